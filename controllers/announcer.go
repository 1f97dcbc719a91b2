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
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/notify"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/internal/eventing"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// announcer emits events, counts and notifies. Every method of it is called after the write that justifies it.
type announcer struct {
	recorder events.EventRecorder
	// notifier sends to the services of spec.notify. Nil: nothing is sent.
	notifier *notify.Notifier
	clock    clock.PassiveClock
	// freed is when a slot last became free, by policy; for a metric alone.
	freed map[string]time.Time
}

// maxReason bounds, in bytes, what an event has of a reason that people wrote on a Node.
const maxReason = 256

func (a *announcer) granted(s *state, node *corev1.Node, n *plan.Node, t plan.Reboot) {
	a.observeGrant(s, n)
	a.both(s, node, what{corev1.EventTypeNormal, v1alpha1.EventRebootGranted, "Grant"},
		"policy %s grants node %s its reboot (number %d)", s.Policy.Name, node.Name, t.Entry.Seq)
	a.notifyOfNode(s.Policy, node.Name, v1alpha1.NotifyRebooting, fmt.Sprintf("Policy %s: node %s is drained and rebooted", s.Policy.Name, node.Name))
	if due := plan.IgnoresWindowsFrom(s.Policy, n); !due.IsZero() && !s.Window.Open && !plan.Urgent(s.Policy, n) {
		a.both(s, node, what{corev1.EventTypeWarning, v1alpha1.EventDeadlinePassed, "Grant"},
			"node %s is rebooted outside the windows: its deadline ended %s", node.Name, timing.Instant(due.UTC()))
	}
	if plan.Urgent(s.Policy, n) {
		text := fmt.Sprintf("node %s is rebooted whatever the hour, by an urgent request: %s", node.Name, message.Shorten(maxReason, n.UrgentReason))
		a.both(s, node, what{corev1.EventTypeWarning, string(v1alpha1.ReasonUrgent), "Grant"}, "%s", text)
		a.notifyOfNode(s.Policy, node.Name, v1alpha1.NotifyUrgent, fmt.Sprintf("Policy %s: %s", s.Policy.Name, text))
	}
}

func (a *announcer) cancelled(s *state, node *corev1.Node, t plan.Reboot) {
	if t.Reason == v1alpha1.ReasonHookTimedOut || t.Reason == v1alpha1.ReasonHookFailed {
		a.failed(s, node.Name, "hook_failed", t.Message)
		a.both(s, node, what{corev1.EventTypeWarning, string(t.Reason), "AwaitHooks"}, "node %s is not rebooted: %s", node.Name, t.Message)
	}
	a.both(s, node, what{corev1.EventTypeNormal, v1alpha1.EventGrantCancelled, "Cancel"},
		"the grant of node %s is taken back (%s): %s", node.Name, t.Reason, t.Message)
}

func (a *announcer) finished(s *state, node *corev1.Node, n *plan.Node, t plan.Reboot, uncordoned bool) {
	observeReboot(s, n, t.Entry)
	a.both(s, node, what{corev1.EventTypeNormal, v1alpha1.EventRebootSucceeded, "Finish"},
		"node %s is back in service", node.Name)
	a.notifyOfNode(s.Policy, node.Name, v1alpha1.NotifyBack, fmt.Sprintf("Policy %s: node %s is back in service after %s", s.Policy.Name, node.Name,
		s.Now.Sub(t.Entry.At.Time).Round(time.Second)))
	if uncordoned {
		a.recorder.Eventf(eventing.Node(node), nil, corev1.EventTypeNormal, v1alpha1.EventUncordoned, "Uncordon", "uncordoned after the reboot (number %d)", t.Entry.Seq)
	}
}

// hooksBegan names the hooks that are asked, for whoever wonders what the node waits for.
func (a *announcer) hooksBegan(s *state, node *corev1.Node, phase protocol.HookPhase) {
	a.both(s, node, what{corev1.EventTypeNormal, v1alpha1.EventWaitingForHook, "BeginHooks"},
		"the %s-hooks of node %s are asked: %s", strings.ToLower(string(phase.Stage)), node.Name, joined(phase.Hooks))
}

// explained emits an event where the reason a node waits for needs somebody's attention.
func (a *announcer) explained(s *state, node *corev1.Node, d plan.Decision) {
	switch d.Reason {
	case v1alpha1.ReasonRebootTimedOut:
		a.failed(s, node.Name, "timed_out", d.Message)
		a.both(s, node, what{corev1.EventTypeWarning, v1alpha1.EventRebootTimedOut, "AwaitBoot"}, "node %s: %s", node.Name, d.Message)
	case v1alpha1.ReasonHookTimedOut, v1alpha1.ReasonHookFailed:
		a.failed(s, node.Name, "hook_failed", d.Message)
		a.both(s, node, what{corev1.EventTypeWarning, string(d.Reason), "AwaitHooks"}, "node %s stays cordoned: %s", node.Name, d.Message)
	case v1alpha1.ReasonDrainTimedOut:
		a.both(s, node, what{corev1.EventTypeWarning, v1alpha1.EventDrainTimedOut, "AwaitDrain"}, "node %s: %s", node.Name, d.Message)
	case v1alpha1.ReasonUndrainablePod, v1alpha1.ReasonBlockingPod:
		a.both(s, node, what{corev1.EventTypeWarning, string(d.Reason), "Decide"}, "node %s is not rebooted: %s", node.Name, d.Message)
	case v1alpha1.ReasonPolicyConflict:
		a.recorder.Eventf(eventing.Node(node), nil, corev1.EventTypeWarning, v1alpha1.EventPolicyConflict, "Decide", "%s", d.Message)
	case v1alpha1.ReasonRecordUnreadable:
		a.recorder.Eventf(eventing.Node(node), nil, corev1.EventTypeWarning, v1alpha1.EventRecordUnreadable, "Decide", "%s", d.Message)
	}
}

// policyEvents emits what changed between two statuses that were both written.
func (a *announcer) policyEvents(before, after *v1alpha1.RebootPolicy) {
	a.haltEvent(before, after)
	a.worsened(before, after, v1alpha1.ConditionWindowOpen, v1alpha1.ReasonUrgent, "Window")
	a.worsened(before, after, v1alpha1.ConditionAccepted, v1alpha1.ReasonPolicyConflict, "Accept")
	a.worsened(before, after, v1alpha1.ConditionProgressing, v1alpha1.ReasonNodeWriteRefused, "WriteNode")
	if c := deadlineCame(before, after); c != nil {
		a.recorder.Eventf(after, nil, corev1.EventTypeWarning, c.Reason, "WatchDeadlines", "%s", c.Message)
	}
	a.agentsEvent(before, after)
	a.runHookEvents(before, after)
}

// runHookEvents names the hooks of the run that are asked, and those that have refused or were silent for too long.
func (a *announcer) runHookEvents(before, after *v1alpha1.RebootPolicy) {
	was, is := runHooksOf(before), runHooksOf(after)
	if is.Reason != "" && (is.Reason != was.Reason || is.Message != was.Message) {
		a.recorder.Eventf(after, nil, corev1.EventTypeWarning, string(is.Reason), "AwaitHooks", "%s", is.Message)
		a.notify(after, v1alpha1.NotifyFailed, fmt.Sprintf("Policy %s: %s", after.Name, is.Message))
	}
	if len(is.Asked) > 0 && is.Number != was.Number {
		a.recorder.Eventf(after, nil, corev1.EventTypeNormal, v1alpha1.EventWaitingForHook, "BeginHooks", "the %s-hooks of the run are asked, number %d: %s",
			strings.ToLower(string(is.Stage)), is.Number, joined(is.Asked))
	}
}

// runHooksOf is how far the hooks of the policy's run are; the zero value: it has none.
func runHooksOf(policy *v1alpha1.RebootPolicy) v1alpha1.RunHooks {
	if run := policy.Status.Run; run != nil && run.Hooks != nil {
		return *run.Hooks
	}
	return v1alpha1.RunHooks{}
}

func joined(keys []v1alpha1.AnnotationKey) string {
	asked := make([]string, len(keys))
	for i, key := range keys {
		asked[i] = string(key)
	}
	return strings.Join(asked, ", ")
}

// gateEvents emits a warning for each gate that blocks now and did not, or blocked for another cause, in the status before.
func (a *announcer) gateEvents(before, after *v1alpha1.RebootPolicy) {
	for _, g := range after.Status.Gates {
		same := func(b v1alpha1.GateStatus) bool { return b.Name == g.Name && b.State == g.State }
		if slices.ContainsFunc(before.Status.Gates, same) {
			continue
		}
		switch g.State {
		case v1alpha1.GateFiring:
			a.recorder.Eventf(after, nil, corev1.EventTypeWarning, v1alpha1.EventAlertFiring, "AskGate", "gate %s: %s", g.Name, g.Message)
		case v1alpha1.GateNotReady:
			a.recorder.Eventf(after, nil, corev1.EventTypeWarning, v1alpha1.EventObjectNotReady, "AskGate", "gate %s: %s", g.Name, g.Message)
		case v1alpha1.GateUnreachable:
			a.recorder.Eventf(after, nil, corev1.EventTypeWarning, v1alpha1.EventGateUnreachable, "AskGate", "gate %s: %s", g.Name, g.Message)
		case v1alpha1.GateClear:
		}
	}
}

func (a *announcer) haltEvent(before, after *v1alpha1.RebootPolicy) {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionHalted)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionHalted)
	if was == nil || is == nil || was.Status == is.Status {
		return
	}
	kind, reason := corev1.EventTypeNormal, v1alpha1.EventResumed
	if is.Status == metav1.ConditionTrue {
		kind, reason = corev1.EventTypeWarning, v1alpha1.EventHalted
	}
	a.recorder.Eventf(after, nil, kind, reason, "Halt", "%s: %s", is.Reason, is.Message)
}

func (a *announcer) agentsEvent(before, after *v1alpha1.RebootPolicy) {
	was := meta.IsStatusConditionFalse(before.Status.Conditions, v1alpha1.ConditionAgentsReady)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionAgentsReady)
	switch {
	case is == nil:
	case !was && is.Status == metav1.ConditionFalse:
		a.recorder.Eventf(after, nil, corev1.EventTypeWarning, v1alpha1.EventAgentsMissing, "WatchAgents", "%s", is.Message)
	case was && is.Status == metav1.ConditionTrue:
		a.recorder.Eventf(after, nil, corev1.EventTypeNormal, v1alpha1.EventAgentsReady, "WatchAgents", "%s", is.Message)
	}
}

// deadlineCame is condition DeadlineNear where a deadline of nodes has come near, or has passed. Nil: neither has.
func deadlineCame(before, after *v1alpha1.RebootPolicy) *metav1.Condition {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionDeadlineNear)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionDeadlineNear)
	switch {
	case is == nil || is.Status != metav1.ConditionTrue:
		return nil
	case was != nil && (was.Reason == is.Reason || was.Reason == string(v1alpha1.ReasonDeadlinePassed)):
		return nil
	}
	return is
}

// worsened emits a warning of a reason that a condition has now and did not have before.
func (a *announcer) worsened(before, after *v1alpha1.RebootPolicy, kind string, reason v1alpha1.Reason, action string) {
	was := meta.FindStatusCondition(before.Status.Conditions, kind)
	is := meta.FindStatusCondition(after.Status.Conditions, kind)
	if is != nil && is.Reason == string(reason) && (was == nil || was.Reason != is.Reason) {
		a.recorder.Eventf(after, nil, corev1.EventTypeWarning, is.Reason, action, "%s", is.Message)
	}
}

// what an event reports: its type, its reason and what the manager was doing.
type what struct{ kind, reason, action string }

// both emits an event on the Node and one on the policy, each related to the other. In all versions of both, so that what is
// repeated within minutes becomes a series: a node that comes and goes floods nobody.
func (a *announcer) both(s *state, node *corev1.Node, w what, note string, args ...any) {
	n, p := eventing.Node(node), policyReference(s.Policy)
	a.recorder.Eventf(n, p, w.kind, w.reason, w.action, note, args...)
	a.recorder.Eventf(p, n, w.kind, w.reason, w.action, note, args...)
}

func policyReference(p *v1alpha1.RebootPolicy) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RebootPolicy", Name: p.Name, UID: p.UID}
}

func (a *announcer) observeGrant(s *state, n *plan.Node) {
	phaseSeconds.WithLabelValues(s.Policy.Name, "waiting").Observe(since(n.WaitsSince(), s.Now))
	free := n.WaitsSince()
	if at := a.freed[s.Policy.Name]; at.After(free) {
		free = at
	}
	grantLatency.Observe(since(free, a.clock.Now()))
}

// observeReleases notes when a slot became free, how old the ended needs were, and which reboots were given up. Each attempt that has
// ended is one line in the log.
func (a *announcer) observeReleases(ctx context.Context, s *state, p plan.Plan) {
	for _, t := range p.Released() {
		a.freed[s.Policy.Name] = s.Now
		if age, ok := t.NeedAge(s.Now); ok {
			needAge.WithLabelValues(s.Policy.Name).Observe(age.Seconds())
		}
		if past := t.Past(s.Now); past != nil {
			logEnded(ctx, s.Policy, past, t.Entry)
		}
		if t.Reason == v1alpha1.ReasonNodeGoneInReboot {
			a.lost(s, t)
		}
		if t.Node != nil && t.Node.Progress != nil && t.Node.Progress.Seq == t.Entry.Seq && t.Node.Progress.Phase == protocol.PhaseAborted {
			a.failed(s, t.Entry.Node, "aborted", string(t.Reason)+": "+t.Message)
		}
	}
}

// lost reports a reboot that failed because its Node was deleted in it. One that was overdue before has been reported as timed out.
func (a *announcer) lost(s *state, t plan.Reboot) {
	if !s.Now.Before(t.Entry.RebootingAt.Add(s.Policy.Spec.RebootOrDefault().TimeoutOrDefault())) {
		return
	}
	a.failed(s, t.Entry.Node, "lost", t.Message)
	a.recorder.Eventf(policyReference(s.Policy), nil, corev1.EventTypeWarning, v1alpha1.EventRebootLost, "AwaitBoot", "node %s: %s", t.Entry.Node, t.Message)
}

// logEnded logs an attempt that has ended, for audits: the same keys for every result, empty where there is nothing.
func logEnded(ctx context.Context, policy *v1alpha1.RebootPolicy, past *v1alpha1.PastReboot, e v1alpha1.LedgerEntry) {
	at := func(t metav1.Time) string {
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
		"result", past.Result, "reason", past.Reason, "message", past.Message, "needSince", at(e.NeedSince), "grantedAt", at(past.GrantedAt),
		"endedAt", at(past.EndedAt), "drain", lasted(past.Drain), "reboot", lasted(past.Reboot), "settle", lasted(past.Settle),
		"fromVersion", past.FromVersion, "toVersion", past.ToVersion, "podsForced", past.PodsForced)
}
