package controllers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/notify"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/attention"
	"github.com/reboot-operator/reboot-operator/controllers/reading"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// named is the number of nodes that a message names.
const named = 10

// NewNotifier returns a notifier for the services of spec.notify, with Secrets of the namespace.
// Messages that cannot be delivered become events. The notifier waits by the clock.
func NewNotifier(mgr ctrl.Manager, recorder events.EventRecorder, metrics *Metrics, namespace string, clock clock.WithTicker) (*notify.Notifier, error) {
	secrets := reading.Secrets{Reader: mgr.GetAPIReader(), Namespace: namespace}
	n := notify.New(secrets, clock, ended(recorder, metrics))
	if err := mgr.Add(n); err != nil {
		return nil, fmt.Errorf("adding the notifier: %w", err)
	}
	return n, nil
}

// ended counts the result of a message, and reports an undelivered one on its policy.
func ended(recorder events.EventRecorder, metrics *Metrics) func(m notify.Message, r notify.Result, err error) {
	return func(m notify.Message, r notify.Result, err error) {
		metrics.notified(m.Policy, string(m.Event), string(r))
		if err != nil {
			recorder.Eventf(policyReference(m.Policy, m.UID), nil, corev1.EventTypeWarning, v1alpha1.EventNotificationFailed, "Notify", "%s", err.Error())
		}
	}
}

// notify sends a notification about a write. It does nothing if the policy names no service.
func (a *announcer) notify(policy *v1alpha1.RebootPolicy, event v1alpha1.NotifyEvent, text string) {
	a.notifyOfNode(policy, "", event, text)
}

// notifyOfNode sends a notification about a node.
func (a *announcer) notifyOfNode(policy *v1alpha1.RebootPolicy, node string, event v1alpha1.NotifyEvent, text string) {
	if a.notifier != nil {
		a.notifier.Notify(policy.Spec.Notify, notify.Message{Event: event, Policy: policy.Name, UID: policy.UID, Node: node, Text: text})
	}
}

// failed counts and reports a reboot that failed.
func (a *announcer) failed(s *state, node, result, message string) {
	a.metrics.countFailure(s, node, result)
	a.notifyOfFailure(s, node, result, message)
}

// notifyOfFailure reports a failed reboot, or a drain that does not end and will count as failed.
func (a *announcer) notifyOfFailure(s *state, node, result, message string) {
	a.notifyOfNode(s.Policy, node, v1alpha1.NotifyFailed, fmt.Sprintf("Policy %s: the reboot of node %s failed (%s): %s", s.Policy.Name, node, result, message))
}

// notifyRun reports a run that begins or ends, after its status was written.
func (a *announcer) notifyRun(before, after *v1alpha1.RebootPolicy, p plan.Plan, now time.Time) {
	switch was, current := before.Status.Run, after.Status.Run; {
	case was == nil && current != nil:
		a.notify(after, v1alpha1.NotifyStarted, started(after.Name, p))
	case was != nil && current == nil:
		run, _ := p.Run(before.Status, now)
		a.notify(after, v1alpha1.NotifyFinished, finished(after, p, run, now))
	}
}

// started names the nodes that need a reboot, beginning with those that go first.
func started(policy string, p plan.Plan) string {
	var nodes []string
	for _, e := range p.Ledger.Own() { // another policy's ledger has already been written
		nodes = append(nodes, e.Node)
	}
	granted := len(nodes)
	for _, d := range p.Decisions {
		if d.Status == corev1.ConditionFalse && !slices.Contains(nodes[:granted], d.Node) {
			nodes = append(nodes, d.Node)
		}
	}
	return fmt.Sprintf("Policy %s begins to reboot nodes, at most %d at once. %s a reboot: %s.", policy, p.Limit,
		message.Count(len(nodes), "node needs", "nodes need"), message.Names(nodes, named))
}

// finished summarizes the run from what the status has recorded, and says what needs a person.
func finished(policy *v1alpha1.RebootPolicy, p plan.Plan, run *v1alpha1.RunStatus, now time.Time) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Policy %s is done: %s rebooted", policy.Name, message.Count(int(run.Rebooted), "node was", "nodes were"))
	if took := now.Sub(run.StartedAt.Time).Round(time.Second); took >= 0 { // otherwise the clock of the leader that began the run was ahead
		fmt.Fprintf(&text, " in %s", took)
	}
	if slowest, took, of := slowest(policy.Status.History, run.Seq); slowest != "" {
		among := ""
		if of < run.Rebooted {
			among = fmt.Sprintf("of the last %d, ", of)
		}
		fmt.Fprintf(&text, "; %s%s took longest, %s", among, slowest, took)
	}
	fmt.Fprintf(&text, "; %s failed.", message.Count(int(run.Failed), "attempt", "attempts"))
	for _, past := range policy.Status.History {
		if past.Seq > run.Seq && past.Result != v1alpha1.RebootSucceeded {
			fmt.Fprintf(&text, "\nNode %s: %s (%s).", past.Node, strings.ToLower(string(past.Result)), past.Reason)
		}
	}
	for _, b := range p.Blocked {
		fmt.Fprintf(&text, "\n%s: %s (%s).", message.Count(int(b.Count), "still waits", "still wait"), b.Reason, message.Names(b.Nodes, named))
	}
	needs := slices.DeleteFunc(attention.Of(&p, policy, now), attention.Item.Chosen)
	for _, a := range needs[:min(len(needs), named)] {
		fmt.Fprintf(&text, "\nNeeds you: %s. Run: %s", a.Message, a.Command)
	}
	if more := len(needs) - named; more > 0 {
		fmt.Fprintf(&text, "\n%s you: kubectl reboot status %s", message.Count(more, "more needs", "more need"), policy.Name)
	}
	return text.String()
}

// slowest returns the node whose reboot took longest after number seq, and the number of these reboots
// that the history holds.
func slowest(history []v1alpha1.PastReboot, seq int64) (node string, took time.Duration, of int32) {
	for _, past := range history {
		if past.Seq <= seq || past.Result != v1alpha1.RebootSucceeded {
			continue
		}
		of++
		if d := past.EndedAt.Sub(past.GrantedAt.Time).Round(time.Second); d > took {
			node, took = past.Node, d
		}
	}
	return node, took, of
}
