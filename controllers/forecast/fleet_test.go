package forecast_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// monday is the time of the forecasts, a Monday evening in winter, one hour before the window.
var monday = time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC)

const minute = time.Minute

func policy(options ...func(*v1alpha1.RebootPolicy)) *v1alpha1.RebootPolicy {
	p := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}
	for _, o := range options {
		o(p)
	}
	return p
}

func atMost(n string) func(*v1alpha1.RebootPolicy) {
	value := intstr.Parse(n)
	return func(p *v1alpha1.RebootPolicy) {
		if p.Spec.Concurrency == nil {
			p.Spec.Concurrency = &v1alpha1.Concurrency{}
		}
		p.Spec.Concurrency.MaxUnavailable = &value
	}
}

func zones(p *v1alpha1.RebootPolicy) {
	if p.Spec.Concurrency == nil {
		p.Spec.Concurrency = &v1alpha1.Concurrency{}
	}
	p.Spec.Concurrency.TopologyKey = "zone"
}

// rings sets two rings of the nodes with their names as label ring. The first one has a limit of
// 50% and a soak of half an hour.
func rings(p *v1alpha1.RebootPolicy) {
	p.Spec.Rings = []v1alpha1.Ring{
		{Name: "canary", MaxUnavailable: new(intstr.FromString("50%")), Soak: &v1alpha1.Duration{Duration: 30 * minute}}, {Name: "later"},
	}
	for i := range p.Spec.Rings {
		p.Spec.Rings[i].NodeSelector.MatchLabels = map[string]string{"ring": p.Spec.Rings[i].Name}
	}
}

// deadline sets the time in which a node should be rebooted, and what it ignores after that.
func deadline(after time.Duration, ignore ...v1alpha1.UrgentIgnore) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Spec.Deadline = &v1alpha1.Duration{Duration: after}
		if len(ignore) > 0 {
			p.Spec.Urgent = &v1alpha1.Urgent{Overdue: &v1alpha1.UrgentNodes{Ignore: ignore}}
		}
	}
}

// allowsUrgent lets urgent requests ignore windows and blackouts.
func allowsUrgent(p *v1alpha1.RebootPolicy) {
	p.Spec.Urgent = &v1alpha1.Urgent{Requested: &v1alpha1.UrgentNodes{Ignore: []v1alpha1.UrgentIgnore{v1alpha1.UrgentIgnoresWindows, v1alpha1.UrgentIgnoresBlackouts}}}
}

// since sets how long a node has needed its reboot.
func since(d time.Duration) func(*record.Node) {
	return func(n *record.Node) { n.RequiredSince = monday.Add(-d) }
}

func weeknights(p *v1alpha1.RebootPolicy) {
	p.Spec.Windows = append(p.Spec.Windows, v1alpha1.Window{
		Name: "weeknights", Days: []v1alpha1.Day{"Mon", "Tue", "Wed", "Thu"}, Start: "22:00",
		Duration: v1alpha1.Duration{Duration: 6 * time.Hour}, TimeZone: "Europe/Berlin",
	})
}

func spec(edit func(*v1alpha1.RebootPolicySpec)) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) { edit(&p.Spec) }
}

// needy returns a node that has needed a reboot for an hour.
func needy(name string, options ...func(*record.Node)) *record.Node {
	n := &record.Node{
		Name: name, Labels: map[string]string{}, Ready: true, BootID: name + "-boot-1",
		Required: corev1.ConditionTrue, RequiredReason: v1alpha1.ReasonUpdateStaged, RequiredSince: monday.Add(-time.Hour),
	}
	for _, o := range options {
		o(n)
	}
	return n
}

// spaced sets ten minutes between reboots.
func spaced(p *v1alpha1.RebootPolicy) {
	if p.Spec.Concurrency == nil {
		p.Spec.Concurrency = &v1alpha1.Concurrency{}
	}
	p.Spec.Concurrency.Spacing = &v1alpha1.Duration{Duration: 10 * minute}
}

// stages sets two rings by zone. The second one has its own limit.
func stages(p *v1alpha1.RebootPolicy) {
	p.Spec.Rings = []v1alpha1.Ring{{Name: "a"}, {Name: "b", MaxUnavailable: new(intstr.FromString("3%"))}}
	for i := range p.Spec.Rings {
		p.Spec.Rings[i].NodeSelector.MatchLabels = map[string]string{"zone": p.Spec.Rings[i].Name}
	}
}

func content(n *record.Node)      { n.Required = corev1.ConditionFalse }
func paused(n *record.Node)       { n.Annotations = map[string]string{v1alpha1.AnnotationPaused: "true"} }
func urgently(n *record.Node)     { n.Urgent = true }
func notReady(n *record.Node)     { n.Ready = false }
func cordoned(n *record.Node)     { n.Cordoned = true }
func controlPlane(n *record.Node) { n.ControlPlane = true }

func labelled(key, value string) func(*record.Node) {
	return func(n *record.Node) { n.Labels = map[string]string{key: value} }
}

func pool(size int, options ...func(*record.Node)) []*record.Node {
	nodes := make([]*record.Node, size)
	for i := range nodes {
		nodes[i] = needy(fmt.Sprintf("node-%05d", i+1), options...)
	}
	return nodes
}

func snapshotOf(p *v1alpha1.RebootPolicy, nodes []*record.Node, rivals ...v1alpha1.RebootPolicy) plan.Snapshot {
	s := plan.Snapshot{Now: monday, Policy: p, Governor: governor.Of(append(rivals, *p)), Nodes: nodes}
	s.Ledger = s.Governor.Ledgers.For(p)
	schedule, err := window.Of(&p.Spec)
	if err != nil {
		s.WindowInvalid = err.Error()
	}
	s.Schedule, s.Window = schedule, schedule.At(monday)
	return s
}
