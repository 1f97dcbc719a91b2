package plan_test

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// finds holds the pods that an agent finds on its node, as namespace/name.
type finds struct {
	blocking, kept, guarded []string
	// closed are pods whose budget allows no eviction. If opens is true, it does once the node is
	// cordoned.
	closed []string
	opens  bool
}

func blockedBy(pods ...string) func(*host) { return func(h *host) { h.finds.blocking = pods } }

func keeps(pods ...string) func(*host) { return func(h *host) { h.finds.kept = pods } }

func guards(pods ...string) func(*host) { return func(h *host) { h.finds.guarded = pods } }

// closes adds a pod whose budget allows no eviction, and which opens or stays closed once the node
// is cordoned.
func closes(pod string, opens bool) func(*host) {
	return func(h *host) { h.finds.closed, h.finds.opens = []string{pod}, opens }
}

// neverTries makes nodes wait until a closed budget opens.
func neverTries(p *v1alpha1.RebootPolicy) {
	p.Spec.Drain = &v1alpha1.Drain{ClosedBudgets: v1alpha1.ClosedBudgetsWait}
}

var migrations = v1alpha1.LabelSelector{MatchLabels: map[string]string{"app": "migration"}}

// waitsForPods sets gates.blockingPods.
func waitsForPods(p *v1alpha1.RebootPolicy) {
	if p.Spec.Gates == nil {
		p.Spec.Gates = &v1alpha1.Gates{}
	}
	p.Spec.Gates.BlockingPods = []v1alpha1.BlockingPod{{PodSelector: migrations}}
}

// keepsPodsOff keeps new pods off the nodes that wait for pods. One rule only prefers other nodes.
func keepsPodsOff(p *v1alpha1.RebootPolicy) {
	waitsForPods(p)
	p.Spec.Gates.BlockingPods = []v1alpha1.BlockingPod{{PodSelector: migrations, TaintEffect: corev1.TaintEffectNoSchedule}, {PodSelector: migrations}}
}

// rebootsAnyway makes a drain that takes too long go on with the pods that are left.
func rebootsAnyway(p *v1alpha1.RebootPolicy) {
	p.Spec.Drain = &v1alpha1.Drain{OnTimeout: v1alpha1.DrainTimeoutReboot}
}

// runs changes the pods of a node.
func runs(name string, options ...func(*host)) func(*cluster) {
	return func(c *cluster) {
		c.hosts[name].finds, c.touched = finds{}, true
		for _, o := range options {
			o(c.hosts[name])
		}
	}
}

// answer plays the agent's part: it reports what it finds if the manager requests it, and removes
// the report if there is nothing to report.
func (h *host) answer(c *cluster) {
	request, err := protocol.ParsePreflight(h.node.Annotations)
	if err != nil || request == nil || c.policies[request.Policy] == nil {
		return
	}
	r := &protocol.PreflightReport{
		Policy: request.Policy, Revision: request.Revision, BootID: h.bootID(), Blocking: named(h.finds.blocking),
		Kept: named(h.finds.kept), Guarded: named(h.finds.guarded), Closed: named(h.finds.closed),
	}
	none := r.Blocking == nil && r.Kept == nil && r.Guarded == nil && r.Closed == nil && !h.record().Last().FailedTry()
	if none && len(c.policies[request.Policy].Spec.BlockingPods()) == 0 {
		r = nil
	}
	report, _ := protocol.ParseAgentReport(h.node.Annotations)
	report.Preflight = r
	value := report.String()
	if h.node.Annotations[v1alpha1.AnnotationReport] == value {
		return
	}
	c.update(h, func(node *corev1.Node) {
		annotate(node, v1alpha1.AnnotationReport, value)
		if value == "" {
			delete(node.Annotations, v1alpha1.AnnotationReport)
		}
	})
}

func named(pods []string) *protocol.NamedPods {
	if len(pods) == 0 {
		return nil
	}
	list := &protocol.NamedPods{Count: int32(len(pods))}
	for _, pod := range pods {
		list.Pods = append(list.Pods, protocol.NamedPod{Pod: pod})
	}
	return list
}

// declines reports whether the agent does not begin, after it has checked the pods once more.
func (h *host) declines(c *cluster) bool {
	policy := c.policies[h.record().Grant.Policy]
	if policy == nil {
		return false
	}
	aborts := policy.Spec.DrainOrDefault().OnTimeoutOrDefault() == v1alpha1.DrainTimeoutAbort
	untried := len(h.finds.closed) > 0 && (!h.entry(c, h.record().Grant).Try || !policy.Spec.DrainOrDefault().TriesClosedBudgets())
	return len(h.finds.blocking) > 0 && len(policy.Spec.BlockingPods()) > 0 || len(h.finds.kept) > 0 || aborts && (len(h.finds.guarded) > 0 || untried)
}
