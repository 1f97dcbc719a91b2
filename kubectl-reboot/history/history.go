// Package history shows how the last reboots of nodes ended, as the policies record it.
package history

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// Attempt is one finished reboot or failed attempt, with the policy that recorded it.
type Attempt struct {
	Policy string `json:"policy"`
	v1alpha1.PastReboot
}

// Of returns everything that the policies recorded about the named nodes, or about all nodes,
// newest last. Each policy keeps its last 20 reboots.
func Of(policies []v1alpha1.RebootPolicy, nodes ...string) []Attempt {
	attempts := []Attempt{}
	for i := range policies {
		for _, past := range policies[i].Status.History {
			if len(nodes) == 0 || slices.Contains(nodes, past.Node) {
				attempts = append(attempts, Attempt{Policy: policies[i].Name, PastReboot: past})
			}
		}
	}
	slices.SortStableFunc(attempts, func(a, b Attempt) int {
		return cmp.Or(a.over().Compare(b.over()), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Seq, b.Seq))
	})
	return attempts
}

// over returns the end of the attempt, or if that is unknown, the time of its grant.
func (e Attempt) over() time.Time {
	if e.EndedAt.IsZero() {
		return e.GrantedAt.Time
	}
	return e.EndedAt.Time
}

// Lines formats the history for people.
func Lines(attempts []Attempt, l terminal.Look, nodes ...string) []string {
	if len(attempts) == 0 {
		of := "any node"
		if len(nodes) > 0 {
			of = strings.Join(nodes, ", ")
		}
		return terminal.Wrap("status.history has no reboot of "+of+"; it holds the last 20 of each policy.", l.Width)
	}
	rows := make([][]terminal.Cell, len(attempts))
	for i, e := range attempts {
		rows[i] = e.row(l.Zone)
	}
	return l.Table([]string{"NODE", "+GRANTED", "+>NUMBER", "ENDED", "RESULT", ">DRAIN", ">REBOOT", ">SETTLE", "POLICY", "WHAT"}, rows)
}

var styles = map[v1alpha1.RebootResult]terminal.Style{
	v1alpha1.RebootSucceeded: terminal.Good, v1alpha1.RebootAborted: terminal.Wait, v1alpha1.RebootLost: terminal.Bad,
	v1alpha1.RebootWithdrawn: terminal.Wait, v1alpha1.RebootUnexpected: terminal.Wait,
}

func (e Attempt) row(zone *time.Location) []terminal.Cell {
	ended := "never"
	if !e.EndedAt.IsZero() {
		ended = moment.Exact(e.EndedAt.Time, zone)
	}
	granted, number := moment.Exact(e.GrantedAt.Time, zone), strconv.FormatInt(e.Seq, 10)
	if e.Result == v1alpha1.RebootUnexpected {
		granted, number = "never", "-"
	}
	return []terminal.Cell{
		{Text: e.Node},
		{Text: granted},
		{Text: number},
		{Text: ended},
		{Text: string(e.Result), Style: styles[e.Result]},
		length(e.Drain), length(e.Reboot), length(e.Settle),
		{Text: e.Policy},
		{Text: e.What()},
	}
}

// length formats the duration of a phase, or a dash if it was not reached or measured.
func length(d *metav1.Duration) terminal.Cell {
	if d == nil {
		return terminal.Cell{Text: "-", Style: terminal.Quiet}
	}
	return terminal.Cell{Text: moment.Span(d.Duration)}
}

// What says why the reboot was made, what changed and how many pods did not leave properly, or why
// no reboot was made.
func (e Attempt) What() string {
	var parts []string
	if e.Reason != "" {
		parts = append(parts, string(e.Reason))
	}
	switch {
	case e.FromVersion == "" && e.ToVersion == "":
	case e.ToVersion == "":
		parts = append(parts, e.FromVersion)
	case e.FromVersion == e.ToVersion && e.Result == v1alpha1.RebootSucceeded:
		parts = append(parts, e.FromVersion+", the same version after the reboot")
	case e.FromVersion == e.ToVersion:
		parts = append(parts, e.FromVersion)
	default:
		parts = append(parts, cmp.Or(e.FromVersion, "?")+" → "+cmp.Or(e.ToVersion, "?"))
	}
	if e.PodsForced > 0 {
		parts = append(parts, "pods forced: "+strconv.Itoa(int(e.PodsForced)))
	}
	if e.Message != "" {
		parts = append(parts, e.Message)
	}
	return strings.Join(parts, ", ")
}
