// Package plan decides which nodes may be rebooted now, and why each other node may not.
//
// It is pure: a Snapshot goes in, a Plan comes out, and the same snapshot always gives the same
// plan. It has no client, context, clock or logger; a linter proves it. Conditions, status, events
// and metrics are views of a Plan.
//
// A plan names three kinds of writes. Their order keeps the limit:
//
//	begin hooks, publish, cancel, finish  on Nodes: only for entries that are already in the ledger
//	grant, adopt, withdraw, release       in the ledger (policy status), in one compare-and-swap
//	conditions and node markers           on Nodes: reports, which permit nothing
//
// The caller applies the first kind, plans again, applies the second, plans again, and so on until
// nothing is left to do. docs/design.md shows the states of one granted reboot.
package plan

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/halt"
	"github.com/reboot-operator/reboot-operator/controllers/plan/ledger"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/report"
	"github.com/reboot-operator/reboot-operator/controllers/plan/slots"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
)

// Plan is everything that is decided about one policy from one snapshot.
type Plan struct {
	// Limit is maxUnavailable in nodes. If the policy shares a limit and has its own, it is the
	// smaller one. LimitOf is the name of the policy that sets it.
	Limit   int32
	LimitOf string
	// Ledger is the ledger that counts for the policy, after this plan.
	Ledger ledger.After
	// Reboots are the granted reboots and the next action for each, in the order of the ledger.
	Reboots []underway.Reboot
	// Unlisted are reboots under a grant of this policy on nodes that neither its ledger nor its
	// selector has, by node name. They are cancelled or finished like Reboots, but take no slot and
	// do not count as failures.
	Unlisted []underway.Reboot
	// Decisions are the wanted RebootPermitted conditions of the nodes that this policy answers
	// for, by node name.
	Decisions []Decision
	// Markers are the markers of nodes that show the wrong ones, in the order in which the nodes
	// take turns.
	Markers []record.Markers
	Halt    halt.State
	// Invalid says why the spec cannot be used, so that nothing is granted, or is nil. Its reason is
	// Invalid or SharedPolicyNotFound.
	Invalid *block.Block
	// WaitsForGates is true if a node waits only for gates or its turn, so that gates must be
	// queried.
	WaitsForGates bool
	// Gates is the wanted status.gates.
	Gates []v1alpha1.GateStatus
	// RunHooks is the wanted status.run.hooks, or nil if no run with hooks is under way. A stage
	// that begins has no time yet.
	RunHooks *v1alpha1.RunHooks
	// RunMoves reports whether RunHooks differs from the status.
	RunMoves bool
	// Next is the next time at which the plan changes by itself, or zero if it does not.
	Next time.Time

	Report
}

// UnderWay returns the Reboots and the Unlisted.
func (p *Plan) UnderWay() []underway.Reboot { return slices.Concat(p.Reboots, p.Unlisted) }

// StatusMoves reports whether the plan changes the ledger or the stage of the run's hooks. Such a
// change has to be written before the next plan.
func (p *Plan) StatusMoves() bool { return p.RunMoves || p.Ledger.Changed() }

// Waiting returns the decisions about nodes that must wait. They hold even if the ledger cannot be
// written.
func (p *Plan) Waiting() []Decision {
	return slices.DeleteFunc(slices.Clone(p.Decisions), func(d Decision) bool { return d.Status != corev1.ConditionFalse })
}

// Released returns the reboots whose entries leave the ledger.
func (p *Plan) Released() []underway.Reboot {
	return slices.DeleteFunc(slices.Clone(p.Reboots), func(t underway.Reboot) bool { return t.Action != underway.ReleaseEntry })
}

// Report is the part of a plan that is only shown, by conditions, status, events, metrics and screens.
type Report struct {
	// Window is status.window: windows, pause and halt in one word.
	Window  v1alpha1.WindowState
	Counts  v1alpha1.NodeCounts
	Blocked []v1alpha1.BlockedNodes
	// Versions counts the OS versions that the nodes run.
	Versions []v1alpha1.SystemVersions
	// Agents reports on the nodes' agents, or is nil while their pods have not been read.
	Agents *report.AgentsHealth
	// Deadlines reports on the nodes' deadlines, or is nil if the policy has none.
	Deadlines *report.DeadlinesHealth
	// Conflicts are the nodes that several policies of the same priority select, this one among
	// them, by those policies.
	Conflicts []governor.Conflict
	// Withheld are the nodes that this policy selects but an invalid policy of higher priority
	// governs, by the name of that policy.
	Withheld map[string][]string
	// Holders lists the nodes that use slots. Unavailable are those that keep others waiting without
	// a grant.
	Holders     string
	Unavailable []slots.Unavailable
	// Failures are the failed attempts on nodes that still need their reboot.
	Failures []Failure
	// Unexpected are reboots of the policy's nodes that nobody granted, the oldest first. History
	// takes those that are new.
	Unexpected []v1alpha1.PastReboot
	// Silent are the nodes in service that do not report whether they need a reboot, by name.
	Silent []string
	// Ignored are the nodes with a condition of spec.nodeConditions that lasts and does not count, by
	// name.
	Ignored []string
	// Stall describes nodes that have used up the limit for long without being rebooted, or is nil.
	Stall *block.Stall
	// RunWaits says which hooks of the run have not approved yet, or is empty.
	RunWaits string
	// OldestPending is the time since which the longest-waiting node has needed its reboot, or zero
	// if none waits.
	OldestPending time.Time
	// Batch is the limit of a run with concurrency.firstBatch, or nil if it does not limit the run.
	Batch *slots.Batch
}
