package plan_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentstep "github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/hack/agents"
)

// These are the owners of a cordon, as managedFields show them on a real Node.
const (
	byAgent = "its agent"
	byAdmin = "an administrator"
)

// host is a machine, its agent, and its Node in the API server, which is nil if deleted.
type host struct {
	name string
	node *corev1.Node

	// reacts is the time that the agent takes to begin. drains and reboots are the durations of
	// those.
	reacts, drains, reboots time.Duration
	// A silent agent does nothing at all. failDrains is the number of drains that will fail. A lost
	// host never comes back.
	silent, lost bool
	failDrains   int
	// startsUpIn is the time after each boot during which a network plugin's taint is on the node.
	startsUpIn time.Duration
	// asks is the version that the engine of a host that rolls back asks for, or empty on a healthy
	// host.
	asks string
	// watched is true if the agent reports like the real one because a program watches the host.
	watched bool
	// upSince is the time of the last boot.
	upSince time.Time

	// finds holds the pods that the agent finds on the node, as namespace/name by kind.
	finds finds

	// showsAutoscalers adds to the transcript whether autoscalers and health controllers are kept
	// from the node.
	showsAutoscalers bool

	cordonedBy string
	boots      int
	// parsed is the planner's view of read, the Node from which it was parsed.
	parsed record.Node
	read   *corev1.Node
	// down is true while the host is off. backAt is the time when it is up again, or zero if
	// unknown.
	down   bool
	backAt time.Time
}

// newHost returns a healthy machine that needs nothing. It drains in two minutes and reboots in
// three.
func newHost(name string, options ...func(*host)) *host {
	h := &host{name: name, drains: 2 * time.Minute, reboots: 3 * time.Minute, boots: 1, node: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}},
	}}
	h.node.Status.NodeInfo.BootID = h.bootID()
	since := metav1.NewTime(evening.Add(-24 * time.Hour))
	h.node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: since},
		{Type: v1alpha1.NodeRebootRequired, Status: corev1.ConditionFalse, Reason: string(v1alpha1.ReasonUpToDate), LastTransitionTime: since},
	}
	for _, o := range options {
		o(h)
	}
	return h
}

// needy returns a host with a staged update.
func needy(name string, options ...func(*host)) *host {
	return newHost(name, append([]func(*host){func(h *host) {
		c := conditionOf(h.node, v1alpha1.NodeRebootRequired)
		c.Status, c.Reason, c.LastTransitionTime = corev1.ConditionTrue, string(v1alpha1.ReasonUpdateStaged), metav1.NewTime(evening.Add(-time.Hour))
	}}, options...)...)
}

func label(key, value string) func(*host) {
	return func(h *host) { h.node.Labels[key] = value }
}

func needsSince(d time.Duration) func(*host) { return needsAt(evening.Add(-d)) }

func needsAt(at time.Time) func(*host) {
	return func(h *host) {
		conditionOf(h.node, v1alpha1.NodeRebootRequired).LastTransitionTime = metav1.NewTime(at)
	}
}

func cordoned(h *host) { h.node.Spec.Unschedulable, h.cordonedBy = true, byAdmin }

func notReady(h *host) { conditionOf(h.node, corev1.NodeReady).Status = corev1.ConditionUnknown }

func slow(d time.Duration) func(*host) { return func(h *host) { h.reacts = d } }

func (h *host) clone() *host {
	copied := *h
	copied.node = h.node.DeepCopy()
	return &copied
}

func (h *host) bootID() string { return fmt.Sprintf("%s-boot-%d", h.name, h.boots) }

// view returns the Node as the planner sees it.
func (h *host) view() record.Node {
	if h.read != h.node {
		h.parsed, h.read = record.Of(h.node), h.node
	}
	return h.parsed
}

func (h *host) record() protocol.Record {
	return h.view().Record
}

// entry returns the node's entry in the ledger of the policy that a grant names, or nil. The agent
// reads it.
func (h *host) entry(c *cluster, grant *protocol.Grant) *v1alpha1.LedgerEntry {
	if grant == nil || c.policies[grant.LedgerName()] == nil {
		return nil
	}
	for _, e := range c.policies[grant.LedgerName()].Status.Grants {
		if e.Node == h.name {
			return &e
		}
	}
	return nil
}

// timer returns when the host or its agent acts next by itself.
func (h *host) timer(c *cluster) time.Time {
	switch {
	case h.down:
		return h.backAt
	case h.node == nil || h.silent:
		return time.Time{}
	}
	if h.hasStartupTaint() && h.backAt.After(c.now) {
		return h.backAt
	}
	if p := h.record().Progress; p != nil && p.Phase == protocol.PhaseDraining {
		return p.At.Add(h.drains)
	}
	if h.watched {
		return agentstep.NodeStatusOf(h.observation(c, h.node)).Again
	}
	if _, ok := protocol.Start(h.record(), h.bootID(), true, c.now); ok {
		return h.record().Grant.At.Add(h.reacts)
	}
	return time.Time{}
}

// step plays one round of the host.
func (h *host) step(c *cluster) {
	switch {
	case h.down && !h.backAt.IsZero() && !c.now.Before(h.backAt):
		h.comeBack(c)
	case h.down || h.silent || h.node == nil:
	case h.hasStartupTaint() && !c.now.Before(h.backAt):
		c.update(h, func(node *corev1.Node) {
			node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == startupTaint })
		})
	case h.record().Progress != nil && h.record().Progress.Phase == protocol.PhaseDraining:
		h.drain(c)
	default:
		if h.reports() {
			h.report(c)
		}
		h.answer(c)
		h.begin(c)
	}
}

func (h *host) begin(c *cluster) {
	progress, ok := h.starts(c)
	if !ok || !protocol.Listed(h.record(), h.entry(c, h.record().Grant)) || c.now.Before(h.record().Grant.At.Add(h.reacts)) || h.declines(c) {
		return
	}
	progress.Try = len(h.finds.closed) > 0 && h.entry(c, h.record().Grant).Try
	c.add("%s begins to drain", h.name)
	if progress.Cordoned {
		h.cordonedBy = byAgent
	}
	c.update(h, func(node *corev1.Node) {
		annotate(node, v1alpha1.AnnotationProgress, progress.String())
		node.Spec.Unschedulable = true
	})
}

func (h *host) drain(c *cluster) {
	commit, ok := protocol.Commit(h.record(), h.bootID(), c.now)
	switch {
	case h.record().Progress.BootID != h.bootID():
		h.abort(c, v1alpha1.ReasonCancelled, "the host was rebooted by somebody else")
	case !ok:
		h.abort(c, v1alpha1.ReasonCancelled, "the grant was cancelled")
	case !h.node.Spec.Unschedulable:
		h.abort(c, v1alpha1.ReasonUncordoned, "somebody uncordoned the node")
	case c.now.Before(h.timer(c)):
	case len(h.finds.closed) > 0 && !h.finds.opens && h.record().Progress.Try:
		h.abort(c, v1alpha1.ReasonUndrainablePod, "default/db-0 is protected by a PodDisruptionBudget")
	case h.failDrains > 0:
		h.failDrains--
		h.abort(c, v1alpha1.ReasonDrainTimedOut, "default/db-0 is protected by a PodDisruptionBudget")
	default:
		h.goDown(c, commit)
	}
}

func (h *host) abort(c *cluster, reason v1alpha1.Reason, message string) {
	c.add("%s gives up its drain, %s: %s", h.name, reason, message)
	c.plays(h, agents.Abort(reason, message, c.now))
}

// goDown passes the point of no return. Only a host whose grant is in a ledger may.
func (h *host) goDown(c *cluster, progress protocol.Progress) {
	c.add("%s is drained and goes down", h.name)
	c.update(h, func(node *corev1.Node) {
		annotate(node, v1alpha1.AnnotationProgress, progress.String())
		c.condition(node, corev1.NodeMaintenanceInProgress, corev1.ConditionTrue, v1alpha1.ReasonRebooting, "")
		c.condition(node, corev1.NodeReady, corev1.ConditionFalse, "", "")
	})
	h.down = true
	if !h.lost {
		h.backAt = c.now.Add(h.reboots)
	}
}

// comeBack starts the host on a new boot: its kubelet is Ready, and its agent, if running, needs no
// reboot any more.
func (h *host) comeBack(c *cluster) {
	h.down, h.backAt, h.upSince = false, c.now.Add(h.startsUpIn), c.now
	h.boots++
	if h.node == nil {
		return
	}
	c.add("%s is up again", h.name)
	c.update(h, func(node *corev1.Node) {
		node.Status.NodeInfo.BootID = h.bootID()
		c.condition(node, corev1.NodeReady, corev1.ConditionTrue, "", "")
		if h.startsUpIn > 0 {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: startupTaint, Effect: corev1.TaintEffectNoSchedule})
		}
		if h.reports() {
			c.permit(agents.Report(h.observation(c, node))(node))
			return
		}
		if !h.silent {
			c.condition(node, v1alpha1.NodeRebootRequired, corev1.ConditionFalse, v1alpha1.ReasonUpToDate, "")
			removeCondition(node, v1alpha1.NodeRebootPermitted)
			delete(node.Annotations, v1alpha1.AnnotationRebootRequested)
		}
		if current := conditionOf(node, corev1.NodeMaintenanceInProgress); current != nil && !h.silent {
			c.condition(node, corev1.NodeMaintenanceInProgress, corev1.ConditionFalse, v1alpha1.EventRebootSucceeded, "")
			if planned := conditionOf(node, corev1.NodeMaintenancePlanned); planned != nil && v1alpha1.IsPlanned(*planned) {
				removeCondition(node, corev1.NodeMaintenancePlanned)
			}
		}
	})
}

// startupTaint is the taint that Cilium's operator sets until its agent runs on the node.
const startupTaint = "node.cilium.io/agent-not-ready"

func (h *host) hasStartupTaint() bool {
	return slices.ContainsFunc(h.node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == startupTaint })
}

// plays applies one write of the host's agent.
func (c *cluster) plays(h *host, move agents.Move) {
	c.update(h, func(node *corev1.Node) { c.permit(move(node)) })
}

func (c *cluster) permit(err error) {
	if err != nil {
		c.Fatalf("%v", err)
	}
}
