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
// newest last.
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
func (a Attempt) over() time.Time {
	if a.EndedAt.IsZero() {
		return a.GrantedAt.Time
	}
	return a.EndedAt.Time
}

// Lines formats the history for people.
func Lines(attempts []Attempt, l terminal.Look, nodes ...string) []string {
	if len(attempts) == 0 {
		of := "any node"
		if len(nodes) > 0 {
			of = strings.Join(nodes, ", ")
		}
		return terminal.Wrap("status.history has no reboot of "+of+"; it holds the last "+strconv.Itoa(v1alpha1.MaxHistory)+" of each policy.", l.Width)
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

func (a Attempt) row(zone *time.Location) []terminal.Cell {
	ended := "never"
	if !a.EndedAt.IsZero() {
		ended = moment.Exact(a.EndedAt.Time, zone)
	}
	granted, number := moment.Exact(a.GrantedAt.Time, zone), strconv.FormatInt(a.Seq, 10)
	if a.Result == v1alpha1.RebootUnexpected {
		granted, number = "never", "-"
	}
	return []terminal.Cell{
		{Text: a.Node},
		{Text: granted},
		{Text: number},
		{Text: ended},
		{Text: string(a.Result), Style: styles[a.Result]},
		length(a.Drain), length(a.Reboot), length(a.Settle),
		{Text: a.Policy},
		{Text: a.What()},
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
func (a Attempt) What() string {
	var parts []string
	if a.Reason != "" {
		parts = append(parts, string(a.Reason))
	}
	switch {
	case a.FromVersion == "" && a.ToVersion == "":
	case a.ToVersion == "":
		parts = append(parts, a.FromVersion)
	case a.FromVersion == a.ToVersion && a.Result == v1alpha1.RebootSucceeded && a.ToKernel == "" && a.Message == "":
		parts = append(parts, a.FromVersion+", the same version after the reboot")
	case a.FromVersion == a.ToVersion:
		parts = append(parts, a.FromVersion)
	default:
		parts = append(parts, cmp.Or(a.FromVersion, "?")+" → "+cmp.Or(a.ToVersion, "?"))
	}
	if a.ToKernel != "" {
		parts = append(parts, "kernel "+a.FromKernel+" → "+a.ToKernel)
	}
	if a.PodsForced > 0 {
		parts = append(parts, "pods forced: "+strconv.Itoa(int(a.PodsForced)))
	}
	if a.Message != "" {
		parts = append(parts, a.Message)
	}
	return strings.Join(parts, ", ")
}
