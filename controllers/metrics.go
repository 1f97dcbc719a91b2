package controllers

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

const prefix = "reboot_operator_"

// Version is set by the linker.
var Version = "dev"

// Metrics are the manager's.
type Metrics struct {
	nodes, blocked, limit, open, next, halted, run, gate *prometheus.GaugeVec

	reboots, notifications *prometheus.CounterVec
	phases, needAge        *prometheus.HistogramVec
	grantLatency           prometheus.Histogram
	times                  *policyTimes
	// gone are the policies that were forgotten. Messages about them may still be on the way.
	gone sync.Map
}

// NewMetrics registers the manager's metrics; a registry takes them once.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		nodes:   gauge("nodes", "Nodes of the policy by state.", "policy", "state"),
		blocked: gauge("blocked_nodes", "Nodes that need a reboot and may not now, by reason.", "policy", "reason"),
		limit:   gauge("limit", "maxUnavailable in nodes.", "policy"),
		open:    gauge("window_open", "1 while windows and blackouts allow a reboot to start.", "policy"),
		next:    gauge("window_next_transition_timestamp_seconds", "When the windows next open or close; 0: never.", "policy"),
		halted:  gauge("halted", "1 while the policy is halted after failures.", "policy"),
		run:     gauge("run_hooks_waiting", "1 while hooks of a run have not approved, by stage; none while no hook is asked.", "policy", "stage"),
		gate:    gauge("gate_up", "1 while the gate can be asked, else 0; none while nobody waits for it.", "policy", "gate"),

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
			Name: prefix + "grant_latency_seconds", Help: "From the moment a slot was free and a node asked, to the node's grant.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60},
		}),
		times: newPolicyTimes(),
	}
	registry.MustRegister(m.nodes, m.blocked, m.limit, m.open, m.next, m.halted, m.run, m.gate, m.reboots, m.notifications, m.phases,
		m.needAge, m.grantLatency, m.times)
	return m
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
}

// observe sets the gauges of one policy from its plan.
func (m *Metrics) observe(policy *v1alpha1.RebootPolicy, p plan.Plan, w window.State) {
	name := policy.Name
	m.gone.Delete(name)
	for state, count := range map[string]int32{
		"selected": p.Counts.Selected, "reporting": p.Counts.Reporting, "reboot_required": p.Counts.RebootRequired,
		"permitted": p.Counts.Permitted, "rebooting": p.Counts.Rebooting, "blocked": p.Counts.Blocked,
		"unavailable": p.Counts.Unavailable, "failed": p.Counts.Failed,
	} {
		m.nodes.WithLabelValues(name, state).Set(float64(count))
	}
	refused, _ := p.Refused()
	m.nodes.WithLabelValues(name, "node_write_refused").Set(float64(refused))
	if p.Agents != nil {
		m.nodes.WithLabelValues(name, "agent_missing").Set(float64(p.Agents.Missing))
	}
	var near, passed int32
	if d := p.Deadlines; d != nil {
		near, passed = d.Near, d.Passed
	}
	m.nodes.WithLabelValues(name, "deadline_near").Set(float64(near))
	m.nodes.WithLabelValues(name, "deadline_passed").Set(float64(passed))
	m.blocked.DeletePartialMatch(prometheus.Labels{"policy": name})
	for _, b := range p.Blocked {
		m.blocked.WithLabelValues(name, string(b.Reason)).Set(float64(b.Count))
	}
	m.limit.WithLabelValues(name).Set(float64(p.Limit))
	m.open.WithLabelValues(name).Set(boolean(w.Open))
	m.halted.WithLabelValues(name).Set(boolean(p.Halt.Halted))
	m.next.WithLabelValues(name).Set(seconds(w.Next))
	m.gate.DeletePartialMatch(prometheus.Labels{"policy": name})
	for _, g := range p.Gates {
		m.gate.WithLabelValues(name, g.Name).Set(boolean(g.State != v1alpha1.GateUnreachable))
	}
	m.run.DeletePartialMatch(prometheus.Labels{"policy": name})
	if p.RunWaits != "" {
		m.run.WithLabelValues(name, string(p.RunHooks.Stage)).Set(1)
	}
	m.zero(name)
	m.times.set(name, p)
}

// zero makes a policy's counters: what begins at 1 is no increase to Prometheus, and a manager is new whenever its own node
// has been rebooted.
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
}

// needs are the reasons for which the engines ask. otherNeed is in metrics for every other one: the reason is what a Node
// reports, and each value would be a series.
var needs = [...]v1alpha1.Reason{v1alpha1.ReasonUpdateStaged, v1alpha1.ReasonSentinelPresent, v1alpha1.ReasonRequested, v1alpha1.ReasonMaxUptime}

const otherNeed v1alpha1.Reason = "Other"

// engineLabel is the value of label engine for a need.
func engineLabel(need v1alpha1.Reason) string {
	if slices.Contains(needs[:], need) {
		return string(need)
	}
	return string(otherNeed)
}

// observeUngoverned counts the nodes that need a reboot and that no policy selects: their policy has no name.
func (m *Metrics) observeUngoverned(decisions []plan.Decision) {
	const none = ""
	count := 0
	for _, d := range decisions {
		if d.Reason == v1alpha1.ReasonNoPolicy {
			count++
		}
	}
	if count == 0 {
		m.blocked.DeletePartialMatch(prometheus.Labels{"policy": none})
		return
	}
	m.blocked.WithLabelValues(none, string(v1alpha1.ReasonNoPolicy)).Set(float64(count))
}

// forget drops the series of a policy that is gone.
func (m *Metrics) forget(policy string) {
	m.gone.Store(policy, true)
	m.times.forget(policy)
	labels := prometheus.Labels{"policy": policy}
	for _, v := range []interface{ DeletePartialMatch(prometheus.Labels) int }{
		m.nodes, m.blocked, m.limit, m.open, m.next, m.halted, m.run, m.gate, m.reboots, m.notifications, m.phases, m.needAge,
	} {
		v.DeletePartialMatch(labels)
	}
}

// notified counts a message. One about a policy that is gone would bring a series back that nothing removes.
func (m *Metrics) notified(policy, event, result string) {
	if _, gone := m.gone.Load(policy); !gone {
		m.notifications.WithLabelValues(policy, event, result).Inc()
	}
}

func (m *Metrics) observeReboot(s *state, n *plan.Node, e v1alpha1.LedgerEntry) {
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
	if i, ok := s.Index[node]; ok {
		need = s.Nodes[i].RequiredReason // a grant that was never shown has not shown what it was for
		if g := s.Nodes[i].Grant; g != nil && g.Need != "" {
			need = g.Need
		}
	}
	m.reboots.WithLabelValues(s.Policy.Name, engineLabel(need), result).Inc()
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}

func since(t, now time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(now.Sub(t).Seconds(), 0)
}

// policyTimes reports how long the longest-waiting node of each policy has waited and, for each node that holds a grant and for no
// other, how long it has been in its phase and how long it is overdue. All are computed at the scrape: between two reconciles nothing
// happens but time.
type policyTimes struct {
	oldest, inProgress, overdue *prometheus.Desc

	mu       sync.Mutex
	byPolicy map[string]policyTime
}

// policyTime is what is kept of a plan: the plan itself would keep the whole snapshot alive.
type policyTime struct {
	oldest  time.Time
	reboots map[string]rebootTime // by node
}

type rebootTime struct {
	phase           plan.RebootState
	since, failedAt time.Time
	reason          v1alpha1.Reason
}

func newPolicyTimes() *policyTimes {
	return &policyTimes{
		oldest: prometheus.NewDesc(prefix+"oldest_pending_seconds", "How long the longest-waiting node has waited; 0: none waits.",
			[]string{"policy"}, nil),
		inProgress: prometheus.NewDesc(prefix+"reboot_phase_seconds", "How long a node that holds a grant has been in its phase.",
			[]string{"policy", "node", "phase"}, nil),
		overdue: prometheus.NewDesc(prefix+"overdue_seconds", "How long a node that holds a grant is past its deadline; its slot is kept.",
			[]string{"policy", "node", "reason"}, nil),
		byPolicy: map[string]policyTime{},
	}
}

// set keeps the times of a plan, without reboots that are released already.
func (c *policyTimes) set(policy string, p plan.Plan) {
	t := policyTime{oldest: p.OldestPending, reboots: map[string]rebootTime{}}
	for _, r := range p.UnderWay() {
		if r.Node != nil && r.Action != plan.ReleaseEntry {
			phase, at := r.State()
			t.reboots[r.Entry.Node] = rebootTime{phase: phase, since: at, failedAt: r.FailedAt, reason: r.Reason}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byPolicy[policy] = t
}

// wasOverdue reports whether the last plan had the reboot of a node past its deadline.
func (c *policyTimes) wasOverdue(policy, node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.byPolicy[policy].reboots[node].failedAt.IsZero()
}

func (c *policyTimes) forget(policy string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byPolicy, policy)
}

// Describe implements prometheus.Collector.
func (c *policyTimes) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.oldest
	descs <- c.inProgress
	descs <- c.overdue
}

// Collect implements prometheus.Collector.
func (c *policyTimes) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for policy, t := range c.byPolicy {
		out <- prometheus.MustNewConstMetric(c.oldest, prometheus.GaugeValue, since(t.oldest, now), policy)
		for node, r := range t.reboots {
			out <- prometheus.MustNewConstMetric(c.inProgress, prometheus.GaugeValue, since(r.since, now), policy, node, string(r.phase))
			if !r.failedAt.IsZero() {
				out <- prometheus.MustNewConstMetric(c.overdue, prometheus.GaugeValue, since(r.failedAt, now), policy, node, string(r.reason))
			}
		}
	}
}
