// Package report is a row for each node: what it runs, since when it needs a reboot, its deadline, and why it waits.
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
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/internal/timing"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// Row is one node.
type Row struct {
	Node string `json:"node"`
	// Policy governs the node. Empty: none, or several of one priority.
	Policy string `json:"policy,omitempty"`
	// OS and Kernel are what the kubelet reports, such as Ubuntu 24.04.1 LTS and 6.8.0-48-generic.
	OS     string `json:"os,omitempty"`
	Kernel string `json:"kernel,omitempty"`
	// BootedAt is when the host booted, as its agent reports it. Zero: it does not.
	BootedAt time.Time `json:"bootedAt,omitzero"`
	// NeedsSince is since when the node has needed a reboot, or since its last one, where that did not end the need. Zero: it needs none.
	NeedsSince time.Time `json:"needsSince,omitzero"`
	// Days are the whole days since then. Nil: it needs none.
	Days *int `json:"days,omitempty"`
	// DeadlineAt is when spec.deadline ends for it. Zero: it needs no reboot, or there is no deadline.
	DeadlineAt time.Time `json:"deadlineAt,omitzero"`
	// LastRebootAt is when the operator last confirmed a reboot of it. Zero: neither the node nor a policy remembers one.
	LastRebootAt time.Time `json:"lastRebootAt,omitzero"`
	// Reason is why it waits, or how far its granted reboot is: the reason of condition RebootPermitted. Otherwise it is why it is unknown
	// whether it needs a reboot. Empty: it needs none, or nothing blocks it.
	Reason v1alpha1.Reason `json:"reason,omitempty"`
}

// Of is a row for each of the nodes that are wanted, by name.
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

// rowOf is what the node itself and the policy that governs it show. A nil policy: none does.
func rowOf(f fleet.Fleet, n *plan.Node, policy *v1alpha1.RebootPolicy) Row {
	node, _ := f.Node(n.Name)
	r := Row{Node: n.Name, OS: node.Status.NodeInfo.OSImage, Kernel: node.Status.NodeInfo.KernelVersion, BootedAt: v1alpha1.BootedAt(n.Annotations)}
	if g := n.Grant; g != nil && g.State == protocol.GrantFinished {
		r.LastRebootAt = g.At.Time
	}
	if n.NeedsReboot() && !n.WaitsSince().IsZero() {
		r.NeedsSince = n.WaitsSince()
		r.Days = new(max(0, int(f.Now.Sub(r.NeedsSince)/(24*time.Hour))))
	}
	if !n.Reports() && !n.Windows {
		r.Reason = cmp.Or(n.RequiredReason, v1alpha1.ReasonAgentsMissing)
	}
	if policy != nil {
		r.Policy, r.DeadlineAt = policy.Name, plan.DueAt(policy, n)
		if fleet.AgentMissing(policy.Status.Agents, n.Name) {
			r.Reason = v1alpha1.ReasonAgentsMissing
		}
	}
	return r
}

// header is the first row of a table and of CSV.
var header = []string{"NODE", "POLICY", "OS", "KERNEL", "BOOTED", "NEEDS SINCE", "DAYS", "DEADLINE", "LAST REBOOT", "REASON"}

// days is the column of numbers.
const days = 6

// cells are a row's, in the order of the header; empty where there is nothing.
func (r Row) cells(at func(time.Time) string) []string {
	when := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return at(t)
	}
	waits := ""
	if r.Days != nil {
		waits = strconv.Itoa(*r.Days)
	}
	return []string{
		r.Node, r.Policy, r.OS, r.Kernel, when(r.BootedAt), when(r.NeedsSince), waits, when(r.DeadlineAt), when(r.LastRebootAt), string(r.Reason),
	}
}

// Lines is the report for people. Without rows it is the header.
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

// CSV is the report for spreadsheets: instants are in UTC by RFC 3339.
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

// text keeps a spreadsheet from taking what a node reports for a formula, and a terminal from obeying it.
func text(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
		cell = "'" + cell
	}
	return terminal.Harmless(cell)
}
