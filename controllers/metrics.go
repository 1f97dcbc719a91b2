package controllers

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/notify"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/attention"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

const prefix = "reboot_operator_"

// Version is set by the linker.
var Version = "dev"

// Metrics holds the metrics of the manager.
type Metrics struct {
	reboots, notifications *prometheus.CounterVec
	phases, needAge        *prometheus.HistogramVec
	grantLatency           prometheus.Histogram
	gauges                 *gauges
	// gone are the policies that were forgotten. Messages about them may still be delivered.
	gone sync.Map
}

// NewMetrics registers the manager's metrics. It may be called once per registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		reboots: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "reboots_total", Help: "Reboots by result; engine is the reason the reboot was needed.",
		}, []string{"policy", "engine", "result"}),
		notifications: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "notifications_total", Help: "Messages to services of spec.notify by result.",
		}, []string{"policy", "event", "result"}),
		phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "reboot_duration_seconds", Help: "How long the phases of a reboot took: waiting, drain, reboot, settle.",
			Buckets: []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 3 * 3600, 12 * 3600, 48 * 3600},
		}, []string{"policy", "phase"}),
		needAge: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "need_age_seconds", Help: "How long nodes had needed the reboots that ended their needs.",
			Buckets: []float64{600, 3600, 6 * 3600, 86400, 2 * 86400, 3 * 86400, 7 * 86400, 14 * 86400, 21 * 86400, 30 * 86400, 60 * 86400, 90 * 86400},
		}, []string{"policy"}),
		grantLatency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: prefix + "grant_latency_seconds", Help: "How long nodes waited for their grant while they needed a reboot and a slot was free.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60},
		}),
		gauges: newGauges(),
	}
	registry.MustRegister(m.reboots, m.notifications, m.phases, m.needAge, m.grantLatency, m.gauges)
	return m
}

// observe reports the plan of a policy.
func (m *Metrics) observe(policy *v1alpha1.RebootPolicy, p plan.Plan, w window.State, items ...attention.Item) {
	m.gone.Delete(policy.Name)
	m.zero(policy.Name)
	m.gauges.set(policy.Name, p, w, items...)
}

// zero creates a policy's counters with value 0. Prometheus does not see a counter that begins at 1
// as an increase, and the manager restarts whenever its own node is rebooted.
func (m *Metrics) zero(policy string) {
	for _, need := range append(needs[:], otherNeed) {
		for _, result := range []string{"succeeded", "aborted", "timed_out", "lost", "hook_failed"} {
			m.reboots.WithLabelValues(policy, engineLabel(need), result)
		}
	}
	for _, phase := range []string{"waiting", "drain", "reboot", "settle"} {
		m.phases.WithLabelValues(policy, phase)
	}
	m.needAge.WithLabelValues(policy)
	for _, event := range []v1alpha1.NotifyEvent{
		v1alpha1.NotifyStarted, v1alpha1.NotifyFinished, v1alpha1.NotifyFailed, v1alpha1.NotifyHalted,
		v1alpha1.NotifyUrgent, v1alpha1.NotifyDeadline, v1alpha1.NotifyRebooting, v1alpha1.NotifyBack,
	} {
		for _, result := range []notify.Result{notify.Sent, notify.Failed, notify.Dropped} {
			m.notifications.WithLabelValues(policy, string(event), string(result))
		}
	}
}

// needs are the reasons for which engines require a reboot. Metrics use otherNeed for every other
// reason: the reason is reported by a Node, and each value would be a series.
var needs = [...]v1alpha1.Reason{v1alpha1.ReasonUpdateStaged, v1alpha1.ReasonSentinelPresent, v1alpha1.ReasonRequested, v1alpha1.ReasonFleetLockRequested, v1alpha1.ReasonMaxUptime, v1alpha1.ReasonNodeCondition}

const otherNeed v1alpha1.Reason = "Other"

// engineLabel returns the value of label engine for a need.
func engineLabel(need v1alpha1.Reason) string {
	if slices.Contains(needs[:], need) {
		return string(need)
	}
	return string(otherNeed)
}

// forget drops the series of a policy that is gone.
func (m *Metrics) forget(policy string) {
	m.gone.Store(policy, true)
	m.gauges.forget(policy)
	labels := prometheus.Labels{"policy": policy}
	for _, v := range []interface{ DeletePartialMatch(prometheus.Labels) int }{m.reboots, m.notifications, m.phases, m.needAge} {
		v.DeletePartialMatch(labels)
	}
}

// notified counts a message, unless its policy is gone. The series would otherwise come back and
// never be removed.
func (m *Metrics) notified(policy, event, result string) {
	if _, gone := m.gone.Load(policy); !gone {
		m.notifications.WithLabelValues(policy, event, result).Inc()
	}
}

func (m *Metrics) observeReboot(s *state, n *record.Node, e v1alpha1.LedgerEntry) {
	name, p, most := s.Policy.Name, n.Progress, since(e.At.Time, s.Now)
	m.reboots.WithLabelValues(name, engineLabel(n.Grant.Need), "succeeded").Inc()
	observe := func(phase string, from, to time.Time) { // by the node's clock, which may be off
		m.phases.WithLabelValues(name, phase).Observe(min(since(from, to), most))
	}
	if p.DrainStartedAt != nil {
		observe("drain", p.DrainStartedAt.Time, p.At.Time)
	}
	observe("reboot", p.At.Time, n.MaintenanceSince)
	observe("settle", n.MaintenanceSince, s.Now)
}

func (m *Metrics) countFailure(s *state, node, result string) {
	need := v1alpha1.Reason("")
	if i, ok := s.index[node]; ok {
		need = s.Nodes[i].RequiredReason // a grant that was never published does not have its need
		if g := s.Nodes[i].Grant; g != nil && g.Need != "" {
			need = g.Need
		}
	}
	m.reboots.WithLabelValues(s.Policy.Name, engineLabel(need), result).Inc()
}

func since(t, now time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(now.Sub(t).Seconds(), 0)
}
