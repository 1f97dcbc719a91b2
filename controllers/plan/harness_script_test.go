package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

const minute = time.Minute

func policy(name string, options ...func(*v1alpha1.RebootPolicy)) *v1alpha1.RebootPolicy {
	p := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, o := range options {
		o(p)
	}
	return p
}

// atMost sets maxUnavailable as users write it: "2" or "25%".
func atMost(n string) func(*v1alpha1.RebootPolicy) {
	value := intstr.Parse(n)
	return func(p *v1alpha1.RebootPolicy) { p.Spec.Concurrency = &v1alpha1.Concurrency{MaxUnavailable: &value} }
}

func concurrencyOf(p *v1alpha1.RebootPolicy) *v1alpha1.Concurrency {
	if p.Spec.Concurrency == nil {
		p.Spec.Concurrency = &v1alpha1.Concurrency{}
	}
	return p.Spec.Concurrency
}

// domains sets the topologyKey. It goes after atMost, which sets the whole of concurrency.
func domains(key string) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) { concurrencyOf(p).TopologyKey = key }
}

// spacing sets concurrency.spacing. It goes after atMost, which sets the whole of concurrency.
func spacing(d time.Duration) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) { concurrencyOf(p).Spacing = &v1alpha1.Duration{Duration: d} }
}

// firstBatch sets concurrency.firstBatch. It goes after atMost, which sets the whole of concurrency.
func firstBatch(nodes string, soak time.Duration) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		concurrencyOf(p).FirstBatch = &v1alpha1.FirstBatch{Nodes: new(intstr.Parse(nodes)), Soak: v1alpha1.Duration{Duration: soak}}
	}
}

// noTaint sets no taint on nodes that wait for their turn. It goes after atMost.
func noTaint(p *v1alpha1.RebootPolicy) {
	concurrencyOf(p).PendingTaint = v1alpha1.PendingTaintNone
}

// deadline sets the time within which a node should have had its reboot.
func deadline(after time.Duration) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Spec.Deadline = &v1alpha1.Duration{Duration: after}
	}
}

// ignoresWindows lets overdue nodes ignore windows.
func ignoresWindows(p *v1alpha1.RebootPolicy) {
	urgentOf(p).Overdue = ignoring(v1alpha1.UrgentIgnoresWindows)
}

func urgentOf(p *v1alpha1.RebootPolicy) *v1alpha1.Urgent {
	if p.Spec.Urgent == nil {
		p.Spec.Urgent = &v1alpha1.Urgent{}
	}
	return p.Spec.Urgent
}

func ignoring(hours ...v1alpha1.UrgentIgnore) *v1alpha1.UrgentNodes {
	return &v1alpha1.UrgentNodes{Ignore: hours}
}

// sharing makes the policy share the limit of another one. It goes after atMost, which sets the
// whole of concurrency.
func sharing(with string) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) { concurrencyOf(p).Shared = with }
}

// inRings orders the nodes by the values of a label: each ring selects the nodes with its name as
// value.
func inRings(key string, rings ...v1alpha1.Ring) func(*v1alpha1.RebootPolicy) {
	for i := range rings {
		rings[i].NodeSelector.MatchLabels = map[string]string{key: rings[i].Name}
	}
	return func(p *v1alpha1.RebootPolicy) { p.Spec.Rings = rings }
}

func ring(name string, options ...func(*v1alpha1.Ring)) v1alpha1.Ring {
	r := v1alpha1.Ring{Name: name}
	for _, o := range options {
		o(&r)
	}
	return r
}

func soaks(d time.Duration) func(*v1alpha1.Ring) {
	return func(r *v1alpha1.Ring) { r.Soak = &v1alpha1.Duration{Duration: d} }
}

// ringAtMost sets maxUnavailable of a ring as users write it.
func ringAtMost(n string) func(*v1alpha1.Ring) {
	return func(r *v1alpha1.Ring) { r.MaxUnavailable = new(intstr.Parse(n)) }
}

// lastReboot sets when the last node was back in service, counted from the evening.
func lastReboot(d time.Duration) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) { p.Status.LastRebootAt = new(metav1.NewTime(evening.Add(d))) }
}

// setNoout and unsetNoout are the hooks of runHooked.
const setNoout, unsetNoout v1alpha1.AnnotationKey = "example.com/noout-set", "example.com/noout-unset"

// runHooked sets a hook before each run and one after it.
func runHooked(p *v1alpha1.RebootPolicy) {
	if p.Spec.Hooks == nil {
		p.Spec.Hooks = &v1alpha1.Hooks{}
	}
	p.Spec.Hooks.RunBefore, p.Spec.Hooks.RunAfter = []v1alpha1.AnnotationKey{setNoout}, []v1alpha1.AnnotationKey{unsetNoout}
}

func selects(key, value string) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Spec.NodeSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

func priority(n int32) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) { p.Spec.Priority = n }
}

func drainTimeout(d time.Duration) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Spec.Drain = &v1alpha1.Drain{Timeout: &v1alpha1.Duration{Duration: d}}
	}
}

// leads sets drain.leadTime.
func leads(d time.Duration) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Spec.Drain = &v1alpha1.Drain{LeadTime: &v1alpha1.Duration{Duration: d}}
	}
}

// excludes takes draining nodes out of load balancers.
func excludes(p *v1alpha1.RebootPolicy) {
	p.Spec.Drain = &v1alpha1.Drain{LoadBalancers: v1alpha1.LoadBalancersExclude}
}

// grace sets the time for which autoscalers are kept from a node after its reboot.
func grace(d time.Duration) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Spec.Autoscaler = &v1alpha1.Autoscaler{Grace: &v1alpha1.Duration{Duration: d}}
	}
}

func allowsUrgent(p *v1alpha1.RebootPolicy) {
	urgentOf(p).Requested = ignoring(v1alpha1.UrgentIgnoresWindows, v1alpha1.UrgentIgnoresBlackouts)
}

// maxUptime lets nodes be up for a month.
func maxUptime(p *v1alpha1.RebootPolicy) {
	p.Spec.MaxUptime = &v1alpha1.Duration{Duration: 720 * time.Hour}
}

// watches lets condition KernelDeadlock ask for a reboot once it has lasted ten minutes.
func watches(p *v1alpha1.RebootPolicy) {
	p.Spec.NodeConditions = []v1alpha1.NodeConditionNeed{{Type: "KernelDeadlock", For: v1alpha1.Duration{Duration: 10 * minute}}}
}

// urgently gives the node an urgent request.
func urgently(h *host) { annotated(v1alpha1.AnnotationRebootRequested, "urgent: CVE-2026-12345")(h) }

func ignoresInhibitors(p *v1alpha1.RebootPolicy) {
	p.Spec.Reboot = &v1alpha1.Reboot{Inhibitors: v1alpha1.ObstacleIgnore}
}

func ignoresCoordinators(p *v1alpha1.RebootPolicy) {
	p.Spec.Reboot = &v1alpha1.Reboot{Coordinators: v1alpha1.ObstacleIgnore}
}

// hosts returns machines by name, each with the given options.
func hosts(machine func(string, ...func(*host)) *host, names string, options ...func(*host)) []*host {
	var list []*host
	for name := range strings.FieldsSeq(names) {
		list = append(list, machine(name, options...))
	}
	return list
}

// isLost makes the host not come back from its reboot.
func isLost(h *host) { h.lost = true }

// startsUpIn makes the host's network plugin keep pods off for a time after each boot.
func startsUpIn(d time.Duration) func(*host) { return func(h *host) { h.startsUpIn = d } }

// settles sets reboot.settle.
func settles(d time.Duration) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Spec.Reboot = &v1alpha1.Reboot{Settle: &v1alpha1.Duration{Duration: d}}
	}
}

func drains(d time.Duration) func(*host) { return func(h *host) { h.drains = d } }

// The functions below are the acts of scripts.

func edits(name string, option func(*v1alpha1.RebootPolicy)) func(*cluster) {
	return func(c *cluster) { c.edit(name, option) }
}

func changes(name string, change func(*host, *corev1.Node)) func(*cluster) {
	return func(c *cluster) {
		c.update(c.hosts[name], func(node *corev1.Node) { change(c.hosts[name], node) })
	}
}

func setReady(name string, status corev1.ConditionStatus) func(*cluster) {
	return func(c *cluster) {
		c.update(c.hosts[name], func(node *corev1.Node) { c.condition(node, corev1.NodeReady, status, "", "") })
	}
}

func pause(_ *host, node *corev1.Node)   { annotate(node, v1alpha1.AnnotationPaused, "true") }
func unpause(_ *host, node *corev1.Node) { delete(node.Annotations, v1alpha1.AnnotationPaused) }

func uncordon(h *host, node *corev1.Node) { node.Spec.Unschedulable, h.cordonedBy = false, "" }

func relabel(key, value string) func(*host, *corev1.Node) {
	return func(_ *host, node *corev1.Node) { node.Labels = map[string]string{key: value} }
}

func sets(key, value string) func(*host, *corev1.Node) {
	return func(_ *host, node *corev1.Node) { annotate(node, key, value) }
}

func deleteNode(name string) func(*cluster) {
	return func(c *cluster) {
		if node := c.hosts[name].node; node != nil {
			c.wake(node)
			c.hosts[name].node = nil
			c.take(judge.Change{Name: name, Node: node, Gone: true})
		}
	}
}

// loseStatus empties a policy's status. Nobody watches the status, so only a new manager notices.
func loseStatus(name string) func(*cluster) {
	return func(c *cluster) {
		c.edit(name, func(p *v1alpha1.RebootPolicy) { p.Status = v1alpha1.RebootPolicyStatus{} })
	}
}

func deletePolicy(name string) func(*cluster) {
	return func(c *cluster) {
		at := c.at()
		c.edit(name, func(p *v1alpha1.RebootPolicy) { p.DeletionTimestamp = &at })
	}
}

func applies(p *v1alpha1.RebootPolicy) func(*cluster) {
	return func(c *cluster) {
		c.put(p.DeepCopy())
		c.wakeAll()
	}
}

func resume(why string) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) { p.Annotations = map[string]string{v1alpha1.AnnotationResume: why} }
}

// gatesAnswer sets the results of a policy's gates from then on. Without gates, they were not
// queried lately.
func gatesAnswer(name string, gates ...v1alpha1.GateStatus) func(*cluster) {
	return func(c *cluster) {
		c.gates[name] = gates
		c.wakePolicy(name)
	}
}

// answersRun answers for a hook of the run if it has been told to run.
func answersRun(name string, key v1alpha1.AnnotationKey, answer string) func(*cluster) {
	return func(c *cluster) {
		if p := c.policies[name]; p != nil && p.Status.Run != nil && p.Status.Run.Hooks != nil && slices.Contains(p.Status.Run.Hooks.Asked, key) {
			c.edit(name, func(p *v1alpha1.RebootPolicy) {
				if p.Annotations == nil {
					p.Annotations = map[string]string{}
				}
				p.Annotations[string(key)] = fmt.Sprintf("%d: %s", p.Status.Run.Hooks.Number, answer)
			})
		}
	}
}

// asks makes a host need a reboot from then on.
func asks(name string) func(*cluster) {
	return func(c *cluster) {
		c.update(c.hosts[name], func(node *corev1.Node) {
			c.condition(node, v1alpha1.NodeRebootRequired, corev1.ConditionTrue, v1alpha1.ReasonUpdateStaged, "")
		})
	}
}
