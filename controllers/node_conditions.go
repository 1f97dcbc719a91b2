package controllers

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

const (
	// conditionsPerPass and conditionsPause spread the writes of conditions on thousands of waiting
	// nodes. When a window opens, all of them have a new reason.
	conditionsPerPass = 50
	conditionsPause   = time.Second
	// conditionsAtLeast is the number written even while slots can be handed over, because people
	// wait for the explanation, too.
	conditionsAtLeast = 2
)

// writeConditions updates RebootPermitted and RebootFailed if status, reason or message differ.
// They permit nothing, so they need no compare-and-swap: if the agent removes one because the need
// ends, the next pass sees it. Short-lived states are not written, a node that refuses does not
// block others, and what exceeds one pass is postponed.
func (w *nodeWriter) writeConditions(ctx context.Context, s *state, decisions []plan.Decision) error {
	written := 0
	for _, d := range decisions {
		i, ok := s.index[d.Node]
		if !ok || d.ShortLived || same(s.Nodes[i].Permitted, d) && same(s.Nodes[i].Failed, d.RebootFailed()) && s.Nodes[i].Preflight == d.Preflight && !d.RemovePlanned {
			continue
		}
		if wait := w.conditionRefusals.waits(d.Node, w.clock.Now()); wait > 0 {
			s.putOff(wait)
			continue
		}
		if w.enough(s, written) {
			s.putOff(conditionsPause)
			return nil
		}
		written++
		switch err := w.writeCondition(ctx, s, s.Nodes[i], d); {
		case nodepatch.IsRefusal(err):
			w.conditionRefusals.note(d.Node, w.clock.Now())
			w.announce.refused(s, err)
			s.fail(err)
		case err != nil:
			return err
		}
	}
	return nil
}

// enough reports whether a pass has written as many conditions or markers as it may.
func (w *nodeWriter) enough(s *state, written int) bool {
	if written >= conditionsPerPass || s.halfOver(w.clock.Now()) {
		return true
	}
	if written < conditionsAtLeast {
		return false
	}
	if s.slotWaits || s.Policy == nil {
		return s.slotWaits
	}
	return w.freedSlot(s.Policy.Name)
}

func (w *nodeWriter) writeCondition(ctx context.Context, s *state, n *record.Node, d plan.Decision) error {
	before := ptr.Deref(n.Permitted, corev1.NodeCondition{})
	patch := nodepatch.New("")
	if d.Status == "" {
		patch.RemoveCondition(v1alpha1.NodeRebootPermitted)
	} else {
		patch.Condition(w.condition(v1alpha1.NodeRebootPermitted, d, n.Permitted))
	}
	w.writeFailed(patch, n, d.RebootFailed())
	if d.RemovePlanned {
		patch.RemoveCondition(corev1.NodeMaintenancePlanned)
	}
	annotate(patch, v1alpha1.AnnotationPreflight, n.Preflight, d.Preflight)
	err := w.patchNode(ctx, s, n, patch)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if was := v1alpha1.Reason(before.Reason); d.Status != "" && was != d.Reason {
		ctrl.LoggerFrom(ctx).V(4).Info("Reported to a node why", "Node", klog.KRef("", n.Name), "status", d.Status, "reason", d.Reason)
		w.announce.explained(s, n, was, d)
	}
	return nil
}

// writeFailed updates condition RebootFailed in the write that tells people the reason.
func (w *nodeWriter) writeFailed(patch *nodepatch.Patch, n *record.Node, d plan.Decision) {
	switch {
	case d.Status != "":
		patch.Condition(w.condition(v1alpha1.NodeRebootFailed, d, n.Failed))
	case n.Failed != nil:
		patch.RemoveCondition(v1alpha1.NodeRebootFailed)
	}
}

// announceMaintenance sets condition MaintenancePlanned with the first write on the Node for a
// grant, unless another program has announced its own maintenance.
func (w *nodeWriter) announceMaintenance(patch *nodepatch.Patch, s *state, n *record.Node, t underway.Reboot) {
	decision := plan.Decision{
		Status: corev1.ConditionTrue, Reason: v1alpha1.EventRebootGranted, Message: plan.GrantedMessage(s.Policy.Name, t.Entry.Seq),
	}
	if !n.PlannedByOthers && !t.Rebooting() {
		patch.Condition(w.condition(corev1.NodeMaintenancePlanned, decision, n.Planned))
	}
}

func same(current *corev1.NodeCondition, d plan.Decision) bool {
	if current == nil {
		return d.Status == ""
	}
	return current.Status == d.Status && current.Reason == string(d.Reason) && current.Message == d.Message
}

// condition returns the condition for a decision. Its heartbeat is the time since which it has its
// reason, so a failure keeps its age when its message changes.
func (w *nodeWriter) condition(kind corev1.NodeConditionType, d plan.Decision, before *corev1.NodeCondition) corev1.NodeCondition {
	c := corev1.NodeCondition{Type: kind, Status: d.Status, Reason: string(d.Reason), Message: d.Message}
	was := ptr.Deref(before, corev1.NodeCondition{})
	c = nodepatch.Dated(c, was, w.clock.Now())
	if was.Status == c.Status && was.Reason == c.Reason && !was.LastHeartbeatTime.IsZero() {
		c.LastHeartbeatTime = was.LastHeartbeatTime
	}
	return c
}

// refusedPause is the time before a Node that has refused a write gets another one.
const refusedPause = time.Minute

// refusals are the Nodes that recently accepted no write, with the time. A pass writes only a
// limited number, sorted by name, so Nodes that refuse would otherwise block all nodes after them.
// It only changes the order of requests, and is lost with the process.
type refusals map[string]time.Time

// waits returns how long a Node must not be written, or 0.
func (r refusals) waits(node string, now time.Time) time.Duration {
	since, refused := r[node]
	if !refused {
		return 0
	}
	return max(since.Add(refusedPause).Sub(now), 0)
}

// note records a Node, and drops those that may be written again.
func (r *refusals) note(node string, now time.Time) {
	maps.DeleteFunc(*r, func(name string, _ time.Time) bool { return r.waits(name, now) == 0 })
	if *r == nil {
		*r = refusals{}
	}
	(*r)[node] = now
}
