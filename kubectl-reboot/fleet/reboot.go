package fleet

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// Reboot is one granted reboot, for people.
type Reboot struct {
	Node string `json:"node"`
	// Number is the grant's.
	Number int64 `json:"number"`
	// Phase is how far it is, as the planner calls it.
	Phase plan.RebootState `json:"phase"`
	// Since is when the phase began.
	Since time.Time `json:"since"`
	// Reason and Message are the planner's.
	Reason  v1alpha1.Reason `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	// Until is when time alone changes something: a deadline, or the end of settling. Zero: none.
	Until time.Time `json:"until,omitzero"`
	// Drain is what the agent reports of its drain: the pods in the way, each with its PodDisruptionBudget; or, once they have
	// left, the volumes that are waited for. Empty: it reports nothing, or the phase is not Draining.
	Drain string `json:"drain,omitempty"`
	// DrainUntil is when drain.timeout ends the drain. Zero: none is under way, or it is over or overdue.
	DrainUntil time.Time `json:"drainUntil,omitzero"`
	// Overdue reports that a deadline has passed; the slot is kept.
	Overdue bool `json:"overdue,omitempty"`
}

// Note states what the phase does not: why it is overdue, what the drain waits for, or the planner's message. Empty: nothing.
func (r Reboot) Note() string {
	switch {
	case r.Overdue:
		return string(r.Reason) + ": " + r.Message
	case r.Drain != "":
		return r.Drain
	case strings.EqualFold(r.Message, string(r.Phase)):
		return ""
	}
	return r.Message
}

// Shown are the conditions of a Node that people are shown beside those that decisions look at.
var Shown = []corev1.NodeConditionType{corev1.NodeDrainInProgress, corev1.NodeDrained}

// RebootOf is a granted reboot of a plan, for people. The Node must be there.
func (f Fleet) RebootOf(t plan.Reboot) Reboot {
	shown := Reboot{
		Node: t.Entry.Node, Number: t.Entry.Seq, Reason: t.Reason, Message: t.Message, Until: t.Until, Overdue: !t.FailedAt.IsZero(),
	}
	shown.Phase, shown.Since = t.State()
	if shown.Phase == plan.StateDraining {
		shown.Drain, shown.DrainUntil = f.drain(t)
	}
	return shown
}

// drain is what the agent reports of a drain, and when drain.timeout ends it. Zero: it is over, or overdue.
func (f Fleet) drain(t plan.Reboot) (report string, until time.Time) {
	if t.FailedAt.IsZero() {
		until = t.DrainUntil
	}
	node, _ := f.Node(t.Entry.Node)
	if c := Condition(node, corev1.NodeDrainInProgress); c.Status == corev1.ConditionTrue {
		return c.Message, until
	}
	if c := Condition(node, corev1.NodeDrained); c.Status == corev1.ConditionTrue && c.Message != "" {
		return c.Message, time.Time{}
	}
	return "", until
}

// Condition is the condition of a node, or the zero one where it has none.
func Condition(node *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{}
}
