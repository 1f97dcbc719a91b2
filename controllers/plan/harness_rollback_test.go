package plan_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	agentstep "github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/hack/agents"
)

// rollsBack makes the host fall back to the old system at each boot, so that its engine asks for
// the version again. Its agent decides and reports like the real one.
func rollsBack(version string) func(*host) { return func(h *host) { h.asks = version } }

// asksFor gives the engine something else to install.
func asksFor(name, version string) func(*cluster) {
	return func(c *cluster) { c.hosts[name].asks = version }
}

// rebootedInVain gives the host two finished reboots for a version, the last one as number 1.
func rebootedInVain(version string) func(*host) {
	return annotated(v1alpha1.AnnotationProgress, protocol.Progress{
		Seq: 1, Phase: protocol.PhaseRebooting, BootID: "the boot before", At: metav1.NewTime(evening.Add(-24 * time.Hour)),
		Update: &protocol.Update{Version: version, Running: "1.0", VainReboots: 1},
	}.String())
}

// isWatched lets another program write condition KernelDeadlock of the host, whose agent decides and
// reports like the real one. It has been up for a day.
func isWatched(h *host) { h.watched, h.upSince = true, evening.AddDate(0, 0, -1) }

// detects makes that program write the condition.
func detects(name string, status corev1.ConditionStatus) func(*cluster) {
	return func(c *cluster) {
		c.update(c.hosts[name], func(node *corev1.Node) { c.condition(node, "KernelDeadlock", status, "", "") })
	}
}

// reports reports whether the host's agent decides and reports like the real one.
func (h *host) reports() bool { return h.asks != "" || h.watched }

// observation returns what the agent of such a host knows.
func (h *host) observation(c *cluster, node *corev1.Node) agentstep.Observation {
	n := record.Of(node)
	engines := []engine.Report{{
		Engine: "update-engine", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: h.asks, Message: "Installed.",
	}}
	if h.asks == "" {
		engines[0] = engine.UpToDate("update-engine", "Nothing is installed.")
	}
	why, requested := node.Annotations[v1alpha1.AnnotationRebootRequested]
	before, _ := protocol.ParseEngines(node.Annotations)
	o := agentstep.Observation{
		Now: c.now, Node: h.name, BootID: h.bootID(), Record: n.Record, Entry: h.entry(c, n.Grant),
		Unschedulable: node.Spec.Unschedulable, Paused: n.Paused(evening), Requested: requested, RequestedWhy: why,
		Conditions: node.Status.Conditions, Engines: engines, OS: &agentstep.OS{Version: "1.0"},
		Policy: &agentstep.Settings{}, Inhibitors: agentstep.Inhibitors{Known: true}, Coordinators: agentstep.Coordinators{Known: true},
		StartLook: agentstep.Look{At: c.now}, Confirmed: true, Before: before,
	}
	if h.watched {
		o.Uptime, o.BootedAt = c.now.Sub(h.upSince)+time.Second, v1alpha1.BootedAt(node.Annotations)
		o.NodeConditions, _ = protocol.ParseNodeConditions(node.Annotations)
		o.Engines = agentstep.AllReports(engines, o)
	}
	return o
}

// starts returns the attempt that the agent begins, and whether it does.
func (h *host) starts(c *cluster) (protocol.Progress, bool) {
	if !h.reports() {
		progress, ok := protocol.Start(h.record(), h.bootID(), !h.node.Spec.Unschedulable, c.now)
		return progress, ok && !v1alpha1.NodeIsPaused(h.node.Annotations, evening)
	}
	start, ok := agentstep.Next(h.observation(c, h.node)).(agentstep.StartDrain)
	return start.Progress, ok
}

// report writes the agent's report if it has changed.
func (h *host) report(c *cluster) {
	reports, reported := agents.Report(h.observation(c, h.node)), h.node.DeepCopy()
	c.permit(reports(reported))
	if !equality.Semantic.DeepEqual(h.node, reported) {
		c.plays(h, reports)
	}
}
