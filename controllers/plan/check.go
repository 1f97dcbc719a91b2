package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/slots"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// Blocked is the result of the first check that blocks a node.
type Blocked struct {
	block.Block

	// check is the reason of that check, which may differ from Reason.
	check v1alpha1.Reason
	// then blocks the node once its hours come, nil if nothing is known that does.
	then *block.Block
}

// check is one step of the fixed order. It passes, or returns why a node may not be rebooted now.
type check struct {
	// reason is the check's entry in docs/reasons.md. Most nodes that it blocks show the same
	// reason.
	reason v1alpha1.Reason
	// passed is the message if the check passes without ignoring anything. Otherwise overruled
	// returns the message.
	passed string
	// blocks returns nil if the check passes.
	blocks func(c *choice, n *record.Node) *block.Block
}

// lasting lists the checks that apply until the agent begins, in their fixed order. The first one
// that blocks gives the reason.
var lasting = []check{
	{v1alpha1.ReasonNodePaused, "the node is not paused", nodePaused},
	{v1alpha1.ReasonInvalid, "the policy's spec is valid", policyInvalid},
	{v1alpha1.ReasonSharedPolicyNotFound, "the policy of concurrency.shared exists, or none is named", sharedPolicyNotFound},
	{v1alpha1.ReasonPaused, "the policy is not paused", policyPaused},
	{v1alpha1.ReasonHalted, "the policy has not halted after failures", policyHalted},
	{v1alpha1.ReasonBlackout, "no blackout is in force", blackout},
	{v1alpha1.ReasonWindowClosed, "a window is open, or the policy has none", windowClosed},
	{v1alpha1.ReasonWindowTooShort, "the window stays open long enough for a reboot", windowTooShort},
	{v1alpha1.ReasonNodeUnavailable, "the node is Ready and its boot ID is known", nodeUnavailable},
	{v1alpha1.ReasonUpdateNotApplied, "no update is known to roll back", agentReports(v1alpha1.ReasonUpdateNotApplied)},
	{v1alpha1.ReasonJustBooted, "the host has been up for two minutes", agentReports(v1alpha1.ReasonJustBooted)},
	{v1alpha1.ReasonInhibited, "nothing on the host inhibits a shutdown", agentReports(v1alpha1.ReasonInhibited)},
	{v1alpha1.ReasonCoordinatorConflict, "no other program is set up to reboot the host", agentReports(v1alpha1.ReasonCoordinatorConflict)},
	{v1alpha1.ReasonRecordUnreadable, "the agent's record can be read", agentBlocks},
}

// untilBegun lists the checks that cancel a grant before the agent begins to use it. A gate that
// has not answered yet does not cancel: a new leader has no answers.
var untilBegun = append(slices.Clip(lasting), ofPodsAndGates(gates.Pods.Blocking, gates.Gates.Unreachable)...)

// beforeGrant lists the checks before a grant. RecordUnreadable is one check in two parts:
// unreadable progress blocks only new grants. Gates come last among the checks of single nodes,
// because they are queried only for nodes that nothing else blocks.
var beforeGrant = slices.Concat(lasting, []check{
	{v1alpha1.ReasonRecordUnreadable, "the agent's record can be read", recordUnreadable},
	{v1alpha1.ReasonBackingOff, "no earlier attempt holds the node back", backingOff},
	{v1alpha1.ReasonRingWaits, "the earlier rings are done, or the policy has none", ringWaits},
}, ofPodsAndGates(gates.Pods.BlockingOrUnknown, gates.Gates.Unknown))

// ofPodsAndGates returns the checks of the pods on the node and of gates. A missing answer blocks a
// new grant but cancels none.
func ofPodsAndGates(blockingPod func(gates.Pods, *record.Node) *block.Block, unreachable func(gates.Gates) *block.Block) []check {
	return []check{
		{v1alpha1.ReasonUndrainablePod, "no pod is known that cannot be drained", undrainablePod},
		{v1alpha1.ReasonBlockingPod, "no pod of gates.blockingPods runs on the node", func(c *choice, n *record.Node) *block.Block { return blockingPod(c.pods, n) }},
		{v1alpha1.ReasonAlertFiring, "no query of gates.prometheus has a result", gateReports(v1alpha1.GateFiring, v1alpha1.ReasonAlertFiring)},
		{v1alpha1.ReasonObjectNotReady, "no expression of gates.objects is false", gateReports(v1alpha1.GateNotReady, v1alpha1.ReasonObjectNotReady)},
		{v1alpha1.ReasonGateUnreachable, "every gate responds", func(c *choice, _ *record.Node) *block.Block { return unreachable(c.gates) }},
	}
}

func undrainablePod(c *choice, n *record.Node) *block.Block {
	return c.pods.Undrainable(n, c.Entries.OwnOf(n.Name), c.attempts, c.Schedule.Zone())
}

// gateReports returns the check that blocks if a gate has the given state.
func gateReports(state v1alpha1.GateState, reason v1alpha1.Reason) func(c *choice, _ *record.Node) *block.Block {
	return func(c *choice, _ *record.Node) *block.Block { return c.gates.Reports(state, reason) }
}

func blackout(c *choice, n *record.Node) *block.Block     { return c.hours.Blackout(n) }
func windowClosed(c *choice, n *record.Node) *block.Block { return c.hours.Closed(n) }

// windowTooShort blocks no node that holds a grant: the window was long enough when it was granted,
// and hooks may have taken time since.
func windowTooShort(c *choice, n *record.Node) *block.Block {
	if c.Held(n) {
		return nil
	}
	return c.hours.TooShort(n)
}

// turn lists the checks for nodes that have passed all others. They run node by node, because each
// depends on the nodes chosen before.
var turn = []check{
	{v1alpha1.ReasonControlPlaneGuard, "no other control-plane node is down", controlPlaneGuard},
	{v1alpha1.ReasonDomainBusy, "no other topology domain is being rebooted", domainBusy},
	{v1alpha1.ReasonBudgetExhausted, "maxUnavailable has a slot left", budgetExhausted},
	{v1alpha1.ReasonSpacing, "the last rebooted node has been back for long enough", spaced},
	{v1alpha1.ReasonRunHookWaits, "the hooks of the run have approved, or the policy has none", runHookWaits},
	{v1alpha1.ReasonDryRun, "the policy has mode Enforce", reportsOnly},
}

// inOrder lists all checks before a grant.
var inOrder = slices.Concat(beforeGrant, turn)

// places numbers the checks in their order, from 1, by reason.
var places = func() map[v1alpha1.Reason]int {
	all := map[v1alpha1.Reason]int{}
	for i, c := range inOrder {
		all[c.reason] = i + 1
	}
	return all
}()

// These are the places at which groups of checks begin: checks of pods, checks of gates, checks
// that depend on the nodes chosen before, and checks that block all nodes.
var (
	podChecks   = places[v1alpha1.ReasonUndrainablePod]
	gateChecks  = places[v1alpha1.ReasonAlertFiring]
	turnChecks  = len(beforeGrant) + 1
	fleetChecks = places[v1alpha1.ReasonSpacing]
)

// reaches reports whether all checks before a place have passed. For nil, all checks have.
func (o *Blocked) reaches(place int) bool { return o == nil || places[o.check] >= place }

// first returns the first check that blocks the node, or nil if all pass.
func (c *choice) first(checks []check, n *record.Node) *Blocked {
	for _, check := range checks {
		if o := check.blocks(c, n); o != nil {
			return &Blocked{Block: *o, check: check.reason}
		}
	}
	return nil
}

// waitsForHours reports whether the node waits for a window to open or a blackout to end.
func (o *Blocked) waitsForHours() bool {
	return o != nil && (o.check == v1alpha1.ReasonBlackout || o.check == v1alpha1.ReasonWindowClosed || o.check == v1alpha1.ReasonWindowTooShort)
}

// lookAhead is the time before a window opens in which agents look at the pods of their nodes, so
// that people can fix what is in the way. Earlier, pods come and go, and each change would be a write.
const lookAhead = 6 * time.Hour

// looksFrom returns from when the agent of a node that waits for its hours looks at its pods, or the
// zero time if they never come.
func (o *Blocked) looksFrom() time.Time {
	if !o.waitsForHours() || o.Until.IsZero() {
		return time.Time{}
	}
	return o.Until.Add(-lookAhead)
}

// NeedsPerson reports whether only a person, or a change outside the operator, can end a wait for the
// reason. Reasons that concern the whole policy do not count.
func NeedsPerson(reason v1alpha1.Reason) bool { return needPerson[reason] }

var needPerson = map[v1alpha1.Reason]bool{
	v1alpha1.ReasonUndrainablePod: true, v1alpha1.ReasonUpdateNotApplied: true, v1alpha1.ReasonCoordinatorConflict: true,
	v1alpha1.ReasonRecordUnreadable: true, v1alpha1.ReasonGateUnreachable: true, v1alpha1.ReasonNodeUnavailable: true,
}

// needNoAction are the reasons that need no action, because they end by themselves or a person has
// asked for them. They come last in the status, because `kubectl get` shows only the first reason.
var needNoAction = map[v1alpha1.Reason]bool{
	v1alpha1.ReasonNodePaused: true, v1alpha1.ReasonPaused: true, v1alpha1.ReasonBlackout: true, v1alpha1.ReasonWindowClosed: true,
	v1alpha1.ReasonWindowTooShort: true, v1alpha1.ReasonJustBooted: true, v1alpha1.ReasonBackingOff: true, v1alpha1.ReasonRingWaits: true,
	v1alpha1.ReasonBlockingPod: true, v1alpha1.ReasonWaitingForHook: true,
	v1alpha1.ReasonControlPlaneGuard: true, v1alpha1.ReasonDomainBusy: true, v1alpha1.ReasonBudgetExhausted: true, v1alpha1.ReasonSpacing: true, v1alpha1.ReasonDryRun: true,
}

// afterHours are the checks that can fail before a window opens and that only a person can change.
// Gates are queried later, and a node that is not Ready now may be Ready by then.
var afterHours = slices.DeleteFunc(slices.Clone(beforeGrant), func(c check) bool {
	return !needPerson[c.reason] || c.reason == v1alpha1.ReasonGateUnreachable || c.reason == v1alpha1.ReasonNodeUnavailable
})

// foresee adds what will block a node that waits for its hours, so that people can fix it in time.
func (c *choice) foresee(o *Blocked, n *record.Node) *Blocked {
	if !o.waitsForHours() {
		return o
	}
	if then := cmp.Or(c.first(afterHours, n), c.downForLong(n)); then != nil && (then.Until.IsZero() || then.Until.After(o.Until)) {
		o.then = &then.Block
		o.Message += fmt.Sprintf("; then it will wait for another reason (%s): %s", then.Reason, then.Message)
	} else if closed := c.pods.Closed(n); closed != "" && c.pods.Tries(n) > 0 {
		o.Message += "; its drain may fail then, and it is tried after the nodes that can go: " + closed
	}
	return o
}

// downForLong returns the block by a node that has not been Ready for so long that somebody has to
// repair it.
func (c *choice) downForLong(n *record.Node) *Blocked {
	if since := n.DownSince(); n.Ready || n.Deleting || since.IsZero() || c.Now.Sub(since) < slots.Patience {
		return nil
	}
	if b := nodeUnavailable(c, n); b != nil {
		return &Blocked{Block: *b, check: v1alpha1.ReasonNodeUnavailable}
	}
	return nil
}

// downForLongAt returns the time from which downForLong blocks a node that waits for its hours, or
// zero.
func (c *choice) downForLongAt(n *record.Node) time.Time {
	if n.Ready || !c.waiting[n.Name].waitsForHours() {
		return time.Time{}
	}
	return n.DownSince().Add(slots.Patience)
}

// maxPauseReason is the limit, in bytes, of a node's pause reason in messages. It is the same as
// for a policy's pause reason.
const maxPauseReason = 256

func nodePaused(c *choice, n *record.Node) *block.Block {
	if !n.Paused(c.Now) {
		return nil
	}
	until, why := v1alpha1.NodePause(n.Annotations)
	if why = message.Shorten(maxPauseReason, why); why != "" {
		why = ": " + why
	}
	if !until.IsZero() {
		why = " until " + c.instant(until) + why
	}
	return block.New(v1alpha1.ReasonNodePaused, "the node is paused%s; to resume: kubectl annotate node %s %s-", why, n.Name, v1alpha1.AnnotationPaused).EndsAt(until)
}

// rejected returns the block of a policy whose spec cannot be used for the given reason, or nil.
func rejected(c *choice, reason v1alpha1.Reason) *block.Block {
	if c.invalid == nil || c.invalid.Reason != reason {
		return nil
	}
	return block.New(reason, "policy %s: %s", c.Policy.Name, c.invalid.Message)
}

func policyInvalid(c *choice, n *record.Node) *block.Block {
	o := rejected(c, v1alpha1.ReasonInvalid)
	if o == nil {
		return nil
	}
	var others []string
	for _, s := range c.Governor.Selecting(n) {
		if s.Policy != c.Policy.Name {
			others = append(others, s.Policy)
		}
	}
	if len(others) > 0 { // fail closed: nobody knows which nodes its owner wanted to hold back
		o.Message += fmt.Sprintf("; policy %s selects the node too, and governs it only once this one is deleted or has a lower spec.priority", others[0])
	}
	return o
}

// sharedPolicyNotFound blocks all nodes if the policy has no limit to share.
func sharedPolicyNotFound(c *choice, _ *record.Node) *block.Block {
	return rejected(c, v1alpha1.ReasonSharedPolicyNotFound)
}

func policyPaused(c *choice, _ *record.Node) *block.Block {
	pause := c.Policy.Spec.Pause
	if !c.paused() {
		return nil
	}
	o := block.New(v1alpha1.ReasonPaused, "policy %s is paused", c.Policy.Name)
	if pause.Until != nil {
		o.Message += " until " + c.instant(pause.Until.Time)
		o.Until = pause.End()
	}
	if pause.Reason != "" {
		o.Message += ": " + pause.Reason
	}
	return o
}

func policyHalted(c *choice, _ *record.Node) *block.Block {
	if !c.halt.Halted {
		return nil
	}
	return block.New(v1alpha1.ReasonHalted, `policy %s halted after failures; to resume: kubectl annotate rebootpolicy %s %s="why"`,
		c.Policy.Name, c.Policy.Name, v1alpha1.AnnotationResume)
}

func nodeUnavailable(_ *choice, n *record.Node) *block.Block {
	switch {
	case n.Deleter != "":
		return block.New(v1alpha1.ReasonNodeUnavailable, "%s is deleting the node", n.Deleter)
	case n.Deleting:
		return block.New(v1alpha1.ReasonNodeUnavailable, "the node is being deleted")
	case !n.Ready:
		return block.New(v1alpha1.ReasonNodeUnavailable, "the node is not Ready, so a reboot could not be confirmed; repair the node first")
	case n.BootID == "":
		return block.New(v1alpha1.ReasonNodeUnavailable, "the kubelet reports no boot ID, so a reboot could not be confirmed")
	case n.OtherBoot != "":
		return block.New(v1alpha1.ReasonNodeUnavailable, "the agent's last report is for boot %.64q, but the kubelet reports boot %q; the reboot waits "+
			"until they agree; if they never do, set --boot-id-file of the agent", n.OtherBoot, n.BootID)
	}
	return nil
}

func recordUnreadable(_ *choice, n *record.Node) *block.Block {
	switch {
	case n.ProgressErr == nil:
		return nil
	case n.Incredible:
		return block.New(v1alpha1.ReasonRecordUnreadable, "%s", n.Unreadable)
	}
	return block.New(v1alpha1.ReasonRecordUnreadable, "%s; the agent repairs it, or: kubectl annotate node %s %s-",
		n.Unreadable, n.Name, v1alpha1.AnnotationProgress)
}

func reportsOnly(c *choice, _ *record.Node) *block.Block {
	if !c.dryRun() {
		return nil
	}
	return block.New(v1alpha1.ReasonDryRun, "the node would be rebooted now, but policy %s is in mode DryRun", c.Policy.Name)
}

func list(names []string) string { return strings.Join(names, ", ") }
