// Package report has a row for each node: what it runs, since when it needs a reboot, its deadline,
// and why it waits.
package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/timing"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// Row describes one node.
type Row struct {
	Node string `json:"node"`
	// Policy is the policy that governs the node. It is empty if none does, or if several have the
	// same priority.
	Policy string `json:"policy,omitempty"`
	// OS and Kernel are reported by the kubelet, for example Ubuntu 24.04.1 LTS and
	// 6.8.0-48-generic.
	OS     string `json:"os,omitempty"`
	Kernel string `json:"kernel,omitempty"`
	// BootedAt is the boot time that the agent reports, or zero.
	BootedAt time.Time `json:"bootedAt,omitzero"`
	// NeedsSince is the beginning of the need, or the last reboot if that did not end the need. It
	// is zero if the node needs no reboot.
	NeedsSince time.Time `json:"needsSince,omitzero"`
	// Days is the number of whole days since then, or nil.
	Days *int `json:"days,omitempty"`
	// DeadlineAt is the end of spec.deadline for this need. It is zero if the node needs no reboot
	// or the policy has no deadline.
	DeadlineAt time.Time `json:"deadlineAt,omitzero"`
	// LastRebootAt is the last reboot that the operator confirmed. It is zero if neither the node
	// nor a policy has a record of one.
	LastRebootAt time.Time `json:"lastRebootAt,omitzero"`
	// Reason is the reason of condition RebootPermitted: why the node waits, or how far its reboot
	// is. If the need is unknown, it says why. It is empty if the node needs no reboot, or if
	// nothing blocks it.
	Reason v1alpha1.Reason `json:"reason,omitempty"`
}

// Of returns a row for each wanted node, sorted by name.
func Of(f fleet.Fleet, wanted func(policy string, labels map[string]string) bool) []Row {
	reasons, last := map[string]v1alpha1.Reason{}, map[string]time.Time{}
	for i := range f.Policies {
		for _, d := range f.Plan(&f.Policies[i]).Decisions {
			reasons[d.Node] = d.Reason
		}
		for _, past := range f.Policies[i].Status.History {
			if past.Result == v1alpha1.RebootSucceeded {
				last[past.Node] = timing.Latest(last[past.Node], past.EndedAt.Time)
			}
		}
	}
	for _, d := range f.Ungoverned() {
		reasons[d.Node] = d.Reason
	}
	rows := []Row{}
	for _, n := range f.Views() {
		policy := f.Governor.Govern(n).Policy
		if !wanted(policy, n.Labels) {
			continue
		}
		r := rowOf(f, n, f.Policy(policy))
		r.Reason, r.LastRebootAt = cmp.Or(reasons[n.Name], r.Reason), timing.Latest(r.LastRebootAt, last[n.Name])
		rows = append(rows, r)
	}
	return rows
}

// rowOf returns the parts of a row that come from the node and its policy. policy is nil if no
// policy governs the node.
func rowOf(f fleet.Fleet, n *record.Node, policy *v1alpha1.RebootPolicy) Row {
	node, _ := f.Node(n.Name)
	r := Row{Node: n.Name, OS: node.Status.NodeInfo.OSImage, Kernel: node.Status.NodeInfo.KernelVersion, BootedAt: v1alpha1.BootedAt(n.Annotations)}
	if g := n.Grant; g != nil && g.State == protocol.GrantFinished {
		r.LastRebootAt = g.At.Time
	}
	if n.NeedsReboot() && !n.WaitsSince().IsZero() {
		r.NeedsSince = n.WaitsSince()
		r.Days = new(max(0, int(f.Now.Sub(r.NeedsSince)/(24*time.Hour))))
	}
	switch {
	case n.Windows:
	case !n.Ready:
		r.Reason = v1alpha1.ReasonNodeUnavailable
	case !n.Reports():
		r.Reason = cmp.Or(n.RequiredReason, v1alpha1.ReasonAgentsMissing)
	}
	if policy != nil {
		r.Policy, r.DeadlineAt = policy.Name, record.DueAt(policy, n)
		if fleet.AgentMissing(policy.Status.Nodes.Agents, n.Name) {
			r.Reason = v1alpha1.ReasonAgentsMissing
		}
	}
	return r
}

// header is the first row of the table and of the CSV file.
var header = []string{"NODE", "POLICY", "OS", "KERNEL", "BOOTED", "NEEDS SINCE", "DAYS", "DEADLINE", "LAST REBOOT", "REASON"}

// days is the index of the numeric column.
const days = 6

// cells formats a row in the order of the header.
func (r Row) cells(format func(time.Time) string) []string {
	when := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return format(t)
	}
	waits := ""
	if r.Days != nil {
		waits = strconv.Itoa(*r.Days)
	}
	return []string{
		r.Node, r.Policy, r.OS, r.Kernel, when(r.BootedAt), when(r.NeedsSince), waits, when(r.DeadlineAt), when(r.LastRebootAt), string(r.Reason),
	}
}

// Lines formats the report for people. Without rows it returns only the header.
func Lines(rows []Row, l terminal.Look) []string {
	if len(rows) == 0 {
		return []string{l.Theme.Paint(terminal.Quiet, strings.Join(header, "  "))}
	}
	columns := slices.Clone(header)
	columns[days] = ">" + columns[days]
	table := make([][]terminal.Cell, len(rows))
	for i, r := range rows {
		for _, text := range r.cells(func(t time.Time) string { return moment.Exact(t, l.Zone) }) {
			cell := terminal.Cell{Text: text}
			if text == "" {
				cell = terminal.Cell{Text: "-", Style: terminal.Quiet}
			}
			table[i] = append(table[i], cell)
		}
	}
	return l.Table(columns, table)
}

// CSV formats the report for spreadsheets. Its times are in UTC, by RFC 3339.
func CSV(rows []Row) (string, error) {
	var b strings.Builder
	w := csv.NewWriter(&b)
	lines := append(make([][]string, 0, 1+len(rows)), header)
	for _, r := range rows {
		cells := r.cells(func(t time.Time) string { return t.UTC().Format(time.RFC3339) })
		for i := range cells {
			cells[i] = text(cells[i])
		}
		lines = append(lines, cells)
	}
	if err := w.WriteAll(lines); err != nil {
		return "", fmt.Errorf("writing CSV: %w", err)
	}
	return b.String(), nil
}

// text prevents a spreadsheet from taking a node's text for a formula, and a terminal from
// interpreting it.
func text(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
		cell = "'" + cell
	}
	return terminal.Harmless(cell)
}
