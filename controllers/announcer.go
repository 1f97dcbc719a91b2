package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/notify"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/report"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// announcer emits events, counts and notifies. Its methods are called after the write that
// justifies them, or after its refusal.
type announcer struct {
	recorder events.EventRecorder
	// notifier sends to the services of spec.notify. If it is nil, nothing is sent.
	notifier *notify.Notifier
	clock    clock.PassiveClock
	metrics  *Metrics
	// freedAt is the time when a slot last became free, by policy. It is only used for a metric.
	freedAt map[string]time.Time
}

// forget drops everything about a policy that is gone.
func (a *announcer) forget(policy string) {
	a.metrics.forget(policy)
	delete(a.freedAt, policy)
}

// maxReason limits the part of a reason on a Node that an event repeats, in bytes.
const maxReason = 256

func (a *announcer) granted(s *state, n *record.Node, t underway.Reboot) {
	a.observeGrant(s, n)
	a.both(s, n, eventKind{corev1.EventTypeNormal, v1alpha1.EventRebootGranted, "Grant"},
		"policy %s grants node %s its reboot (number %d)", s.Policy.Name, n.Name, t.Entry.Seq)
	a.notifyOfNode(s.Policy, n.Name, v1alpha1.NotifyRebooting, fmt.Sprintf("Policy %s: node %s will be drained and rebooted", s.Policy.Name, n.Name))
	if due := record.IgnoredFrom(s.Policy, n, v1alpha1.UrgentIgnoresWindows); !due.IsZero() && !s.Window.Open && !record.Urgent(s.Policy, n) {
		a.both(s, n, eventKind{corev1.EventTypeWarning, v1alpha1.ReasonDeadlinePassed, "Grant"},
			"node %s will be rebooted outside the windows, because its deadline ended %s", n.Name, timing.Instant(due))
	}
	if record.Urgent(s.Policy, n) {
		text := fmt.Sprintf("node %s will be rebooted without waiting for a window, because its request is urgent: %s", n.Name, message.Shorten(maxReason, n.UrgentReason))
		a.both(s, n, eventKind{corev1.EventTypeWarning, v1alpha1.ReasonUrgent, "Grant"}, "%s", text)
		a.notifyOfNode(s.Policy, n.Name, v1alpha1.NotifyUrgent, fmt.Sprintf("Policy %s: %s", s.Policy.Name, text))
	}
}

func (a *announcer) cancelled(s *state, n *record.Node, t underway.Reboot) {
	if t.Reason == v1alpha1.ReasonHookTimedOut || t.Reason == v1alpha1.ReasonHookFailed {
		a.failed(s, n.Name, "hook_failed", t.Message)
		a.both(s, n, eventKind{corev1.EventTypeWarning, t.Reason, "AwaitHooks"}, "node %s is not rebooted: %s", n.Name, t.Message)
	}
	a.both(s, n, eventKind{corev1.EventTypeNormal, v1alpha1.EventGrantCancelled, "Cancel"},
		"the grant of node %s is cancelled (%s): %s", n.Name, t.Reason, t.Message)
}

func (a *announcer) finished(s *state, n *record.Node, t underway.Reboot, uncordoned bool) {
	a.metrics.observeReboot(s, n, t.Entry)
	a.both(s, n, eventKind{corev1.EventTypeNormal, v1alpha1.EventRebootSucceeded, "Finish"},
		"node %s is back in service", n.Name)
	a.notifyOfNode(s.Policy, n.Name, v1alpha1.NotifyBack, fmt.Sprintf("Policy %s: node %s is back in service after %s", s.Policy.Name, n.Name,
		s.Now.Sub(t.Entry.At.Time).Round(time.Second)))
	if uncordoned {
		a.recorder.Eventf(lifecycle.NodeReference(n.Name, n.UID), nil, corev1.EventTypeNormal, string(v1alpha1.ReasonUncordoned), "Uncordon", "uncordoned after the reboot (number %d)", t.Entry.Seq)
	}
}

// refused reports a node on which the API server refuses the manager's conditions or markers. If
// there are many, the event names one.
func (a *announcer) refused(s *state, err error) {
	if s.Policy != nil {
		a.ofPolicy(s.Policy, corev1.EventTypeWarning, v1alpha1.ReasonNodeWriteRefused, "ReportToNode", err.Error())
	}
}

// undone reports what a write about a granted reboot set but the Node does not show. The reboot
// continues.
func (a *announcer) undone(s *state, n *record.Node, err *nodepatch.UndoneError) {
	a.both(s, n, eventKind{corev1.EventTypeWarning, v1alpha1.ReasonNodeWriteRefused, "WriteNode"}, "node %s: %s", n.Name, err.Error())
}

// hooksBegan emits an event that names the hooks that the node waits for.
func (a *announcer) hooksBegan(s *state, n *record.Node, phase protocol.HookPhase) {
	a.both(s, n, eventKind{corev1.EventTypeNormal, v1alpha1.ReasonWaitingForHook, "BeginHooks"},
		"the %s-hooks of node %s start: %s", strings.ToLower(string(phase.Stage)), n.Name, message.Names(phase.Hooks, len(phase.Hooks)))
}

// overdue maps a reason to the result in metrics if a reboot that keeps its slot for this reason
// counts as failed.
var overdue = map[v1alpha1.Reason]string{
	v1alpha1.ReasonRebootTimedOut: "timed_out", v1alpha1.ReasonAgentSilent: "timed_out", v1alpha1.ReasonStartupTaint: "timed_out",
	v1alpha1.ReasonHookTimedOut: "hook_failed", v1alpha1.ReasonHookFailed: "hook_failed",
}

// explained emits an event if a node waits for a reason that needs an administrator. was is the
// previous reason. Two overdue reasons with the same result count as one failure.
func (a *announcer) explained(s *state, n *record.Node, was v1alpha1.Reason, d plan.Decision) {
	if result := overdue[d.Reason]; result != "" && result != overdue[was] {
		a.failed(s, n.Name, result, d.Message)
	}
	switch d.Reason {
	case v1alpha1.ReasonRebootTimedOut, v1alpha1.ReasonAgentSilent, v1alpha1.ReasonStartupTaint:
		a.both(s, n, eventKind{corev1.EventTypeWarning, d.Reason, "AwaitBoot"}, "node %s: %s", n.Name, d.Message)
	case v1alpha1.ReasonHookTimedOut, v1alpha1.ReasonHookFailed:
		a.both(s, n, eventKind{corev1.EventTypeWarning, d.Reason, "AwaitHooks"}, "node %s stays cordoned: %s", n.Name, d.Message)
	case v1alpha1.ReasonDrainTimedOut:
		a.notifyOfFailure(s, n.Name, string(d.Reason), d.Message)
		a.both(s, n, eventKind{corev1.EventTypeWarning, v1alpha1.ReasonDrainTimedOut, "AwaitDrain"}, "node %s: %s", n.Name, d.Message)
	case v1alpha1.ReasonUndrainablePod, v1alpha1.ReasonBlockingPod:
		a.both(s, n, eventKind{corev1.EventTypeWarning, d.Reason, "Decide"}, "node %s is not rebooted: %s", n.Name, d.Message)
	case v1alpha1.ReasonPolicyConflict, v1alpha1.ReasonRecordUnreadable:
		a.recorder.Eventf(lifecycle.NodeReference(n.Name, n.UID), nil, corev1.EventTypeWarning, string(d.Reason), "Decide", "%s", d.Message)
	}
}

// policyEvents emits and notifies what has changed between two written statuses.
func (a *announcer) policyEvents(before, after *v1alpha1.RebootPolicy) {
	for _, current := range after.Status.Conditions {
		was := metav1.Condition{}
		if c := meta.FindStatusCondition(before.Status.Conditions, current.Type); c != nil {
			was = *c
		}
		if was.Status != current.Status || was.Reason != current.Reason {
			a.conditionChanged(after, was, current)
		}
	}
	a.runHookEvents(before, after)
	a.gateEvents(before, after)
}

// deadlineEvents reports that a first deadline is near, and each deadline that has passed. A node
// that is overdue for a long time, such as a paused one, does not hide the others. last is the time
// of the previous status that this process wrote, or zero. Comparing counts is not enough: a count
// stays the same if one node is done when another passes its deadline.
func (a *announcer) deadlineEvents(before, after *v1alpha1.RebootPolicy, current *report.DeadlinesHealth, last time.Time) {
	if current == nil {
		return
	}
	near := current.Reason == v1alpha1.ReasonDeadlineNear && !meta.IsStatusConditionTrue(before.Status.Conditions, v1alpha1.ConditionDeadlineNear)
	passed := current.Passed > before.Status.Nodes.Overdue || !last.IsZero() && current.PassedAt.After(last)
	if !near && !passed {
		return
	}
	a.ofPolicy(after, corev1.EventTypeWarning, current.Reason, "WatchDeadlines", current.Message)
	a.notify(after, v1alpha1.NotifyDeadline, fmt.Sprintf("Policy %s: %s", after.Name, current.Message))
}

// conditionChanged emits an event for a change of a policy's condition. A new condition has the
// zero value before.
func (a *announcer) conditionChanged(policy *v1alpha1.RebootPolicy, was, current metav1.Condition) {
	switch reason := v1alpha1.Reason(current.Reason); {
	case current.Type == v1alpha1.ConditionHalted:
		a.haltChanged(policy, was, current)
	case current.Reason == was.Reason:
	case reason == v1alpha1.ReasonUrgent:
		a.ofPolicy(policy, corev1.EventTypeWarning, reason, "Window", current.Message)
		a.notify(policy, v1alpha1.NotifyUrgent, fmt.Sprintf("Policy %s is %s", policy.Name, current.Message))
	case current.Type == v1alpha1.ConditionAccepted && reason != v1alpha1.ReasonAccepted:
		a.ofPolicy(policy, corev1.EventTypeWarning, reason, "Accept", current.Message)
	case reason == v1alpha1.ReasonNodeWriteRefused:
		a.ofPolicy(policy, corev1.EventTypeWarning, reason, "WriteNode", current.Message)
	case reason == v1alpha1.ReasonLimitHeld:
		a.ofPolicy(policy, corev1.EventTypeWarning, reason, "Decide", current.Message)
	case reason == v1alpha1.ReasonAgentsMissing:
		a.ofPolicy(policy, corev1.EventTypeWarning, reason, "WatchAgents", current.Message)
	case reason == v1alpha1.ReasonAgentsReady && was.Status == metav1.ConditionFalse:
		a.ofPolicy(policy, corev1.EventTypeNormal, reason, "WatchAgents", current.Message)
	}
}

func (a *announcer) haltChanged(policy *v1alpha1.RebootPolicy, was, current metav1.Condition) {
	switch {
	case current.Status == metav1.ConditionTrue && was.Status != metav1.ConditionTrue:
		a.ofPolicy(policy, corev1.EventTypeWarning, v1alpha1.ReasonHalted, "Halt", current.Reason+": "+current.Message)
		a.notify(policy, v1alpha1.NotifyHalted, fmt.Sprintf("Policy %s halted: %s", policy.Name, current.Message))
	case current.Status != metav1.ConditionTrue && was.Status == metav1.ConditionTrue:
		a.ofPolicy(policy, corev1.EventTypeNormal, v1alpha1.ReasonResumed, "Halt", current.Message)
	}
}

// ofPolicy emits an event on a policy.
func (a *announcer) ofPolicy(policy *v1alpha1.RebootPolicy, kind string, reason v1alpha1.Reason, action, note string) {
	a.recorder.Eventf(policy, nil, kind, string(reason), action, "%s", note)
}

// runHookEvents emits events for the run's hooks that have started, and for those that have refused
// or timed out.
func (a *announcer) runHookEvents(before, after *v1alpha1.RebootPolicy) {
	was, current := runHooksOf(before), runHooksOf(after)
	if current.Reason != "" && (current.Reason != was.Reason || current.Message != was.Message) {
		a.ofPolicy(after, corev1.EventTypeWarning, current.Reason, "AwaitHooks", current.Message)
		a.notify(after, v1alpha1.NotifyFailed, fmt.Sprintf("Policy %s: %s", after.Name, current.Message))
	}
	if len(current.Asked) > 0 && current.Number != was.Number {
		a.ofPolicy(after, corev1.EventTypeNormal, v1alpha1.ReasonWaitingForHook, "BeginHooks",
			fmt.Sprintf("the %s-hooks of the run start, number %d: %s", strings.ToLower(string(current.Stage)), current.Number, message.Names(current.Asked, len(current.Asked))))
	}
}

// runHooksOf returns the state of the hooks of the policy's run, or the zero value.
func runHooksOf(policy *v1alpha1.RebootPolicy) v1alpha1.RunHooks {
	if run := policy.Status.Run; run != nil && run.Hooks != nil {
		return *run.Hooks
	}
	return v1alpha1.RunHooks{}
}

// gateReasons are the reasons of the events for states in which a gate blocks.
var gateReasons = map[v1alpha1.GateState]v1alpha1.Reason{
	v1alpha1.GateFiring:      v1alpha1.ReasonAlertFiring,
	v1alpha1.GateNotReady:    v1alpha1.ReasonObjectNotReady,
	v1alpha1.GateUnreachable: v1alpha1.ReasonGateUnreachable,
}

// gateEvents emits events for the gates that block now and did not block, or for another cause, in
// the previous status. Gates with the same reason share one event, because several events would
// become a series with the note of only one of them.
func (a *announcer) gateEvents(before, after *v1alpha1.RebootPolicy) {
	notes := map[v1alpha1.Reason]string{}
	for _, g := range after.Status.Gates {
		same := func(b v1alpha1.GateStatus) bool { return b.Name == g.Name && b.State == g.State }
		if reason, blocks := gateReasons[g.State]; blocks && !slices.ContainsFunc(before.Status.Gates, same) {
			notes[reason] += "; gate " + g.Name + ": " + g.Message
		}
	}
	for reason, note := range notes {
		a.ofPolicy(after, corev1.EventTypeWarning, reason, "AskGate", strings.TrimPrefix(note, "; "))
	}
}

// eventKind holds the type, the reason and the action of an event.
type eventKind struct {
	kind   string
	reason v1alpha1.Reason
	action string
}

// both emits an event on the Node and one on the policy, each related to the other. The references
// have no resourceVersion, so events that are repeated within minutes become a series. A node that
// comes and goes does not cause a flood of events.
func (a *announcer) both(s *state, n *record.Node, e eventKind, note string, args ...any) {
	node, p := lifecycle.NodeReference(n.Name, n.UID), policyReference(s.Policy.Name, s.Policy.UID)
	a.recorder.Eventf(node, p, e.kind, string(e.reason), e.action, note, args...)
	a.recorder.Eventf(p, node, e.kind, string(e.reason), e.action, note, args...)
}

func policyReference(name string, uid types.UID) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RebootPolicy", Name: name, UID: uid}
}

func (a *announcer) observeGrant(s *state, n *record.Node) {
	a.metrics.phases.WithLabelValues(s.Policy.Name, "waiting").Observe(since(n.WaitsSince(), s.Now))
	free := timing.Latest(n.WaitsSince(), a.freedAt[s.Policy.Name])
	a.metrics.grantLatency.Observe(since(free, a.clock.Now()))
}

// observeReleases records that slots became free, how old the ended needs were, and which reboots
// were given up. It logs one line for each attempt that has ended.
func (a *announcer) observeReleases(ctx context.Context, s *state, p plan.Plan) {
	for _, t := range p.Released() {
		a.freedAt[s.Policy.Name] = s.Now
		if age, ok := t.NeedAge(s.Now); ok {
			a.metrics.needAge.WithLabelValues(s.Policy.Name).Observe(age.Seconds())
		}
		past := t.Past(s.Now)
		if past == nil {
			past = cancelledEarly(t, s.Now)
		}
		logEnded(ctx, s.Policy, past, t.Entry)
		if t.Reason == v1alpha1.ReasonNodeGoneInReboot {
			a.lost(s, t)
		}
		if t.Node != nil && t.Node.In(t.Entry.Seq, protocol.PhaseAborted) {
			a.aborted(s, t)
		}
	}
}

// aborted counts an attempt that the agent has given up, and reports it if it failed. Cancelled
// attempts, and attempts whose host was rebooted otherwise, did not fail.
func (a *announcer) aborted(s *state, t underway.Reboot) {
	const result = "aborted"
	if t.Reason == v1alpha1.ReasonCancelled {
		a.metrics.countFailure(s, t.Entry.Node, result)
		return
	}
	a.failed(s, t.Entry.Node, result, string(t.Reason)+": "+t.Message)
}

// lost reports that a Node was deleted during its reboot, unless it was overdue before.
func (a *announcer) lost(s *state, t underway.Reboot) {
	if a.metrics.gauges.wasOverdue(s.Policy.Name, t.Entry.Node) {
		return
	}
	a.failed(s, t.Entry.Node, "lost", t.Message)
	a.recorder.Eventf(policyReference(s.Policy.Name, s.Policy.UID), lifecycle.NodeReference(t.Entry.Node, t.Entry.NodeUID), corev1.EventTypeWarning, v1alpha1.EventRebootLost, "AwaitBoot", "node %s: %s", t.Entry.Node, t.Message)
}

// cancelledEarly returns an attempt whose grant was cancelled before it disturbed the node.
// status.history does not contain such attempts.
func cancelledEarly(t underway.Reboot, now time.Time) *v1alpha1.PastReboot {
	return &v1alpha1.PastReboot{
		Node: t.Entry.Node, Seq: t.Entry.Seq, GrantedAt: t.Entry.At, EndedAt: metav1.NewTime(now), FromVersion: t.Entry.OSVersion,
		Result: v1alpha1.RebootCancelled, Reason: t.Reason, Message: t.Message,
	}
}

// logEnded logs an attempt that has ended, for audits. The keys are the same for every result, and
// missing values are empty.
func logEnded(ctx context.Context, policy *v1alpha1.RebootPolicy, past *v1alpha1.PastReboot, e v1alpha1.LedgerEntry) {
	format := func(t metav1.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	lasted := func(d *metav1.Duration) string {
		if d == nil {
			return ""
		}
		return d.Duration.String()
	}
	ctrl.LoggerFrom(ctx).Info("Ended a reboot attempt", "RebootPolicy", klog.KObj(policy), "Node", klog.KRef("", past.Node), "seq", past.Seq,
		"result", past.Result, "reason", past.Reason, "message", past.Message, "needSince", format(e.NeedSince), "grantedAt", format(past.GrantedAt),
		"endedAt", format(past.EndedAt), "drain", lasted(past.Drain), "reboot", lasted(past.Reboot), "settle", lasted(past.Settle),
		"fromVersion", past.FromVersion, "toVersion", past.ToVersion, "fromKernel", past.FromKernel, "toKernel", past.ToKernel, "podsForced", past.PodsForced)
}
