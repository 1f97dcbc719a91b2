package controllers

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

const prefix = "reboot_operator_"

// Version is set by the linker.
var Version = "dev"

var (
	nodesGauge   = gauge("nodes", "Nodes of the policy by state.", "policy", "state")
	blockedGauge = gauge("blocked_nodes", "Nodes that need a reboot and may not now, by reason.", "policy", "reason")
	limitGauge   = gauge("limit", "maxUnavailable in nodes.", "policy")
	openGauge    = gauge("window_open", "1 while windows and blackouts allow a reboot to start.", "policy")
	nextGauge    = gauge("window_next_transition_timestamp_seconds", "When the windows next open or close; 0: never.", "policy")
	haltedGauge  = gauge("halted", "1 while the policy is halted after failures.", "policy")
	runGauge     = gauge("run_hooks_waiting", "1 while hooks of a run have not approved, by stage; none while no hook is asked.", "policy", "stage")
	gateGauge    = gauge("gate_up", "1 while the gate can be asked, else 0; none while nobody waits for it.", "policy", "gate")
	buildGauge   = gauge("build_info", "1, with the program's version.", "version", "goversion")

	oldest  = newOldestPending()
	reboots = newRebootTimes()

	rebootsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: prefix + "reboots_total", Help: "Reboots by result; engine is the reason the reboot was needed.",
	}, []string{"policy", "engine", "result"})
	notificationsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: prefix + "notifications_total", Help: "Messages to services of spec.notify by result.",
	}, []string{"policy", "event", "result"})
	phaseSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: prefix + "reboot_duration_seconds", Help: "How long the phases of a reboot took: waiting, drain, reboot, settle.",
		Buckets: []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 3 * 3600, 12 * 3600, 48 * 3600},
	}, []string{"policy", "phase"})
	needAge = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: prefix + "need_age_seconds", Help: "How long nodes had needed the reboots that ended their needs.",
		Buckets: []float64{600, 3600, 6 * 3600, 86400, 2 * 86400, 3 * 86400, 7 * 86400, 14 * 86400, 21 * 86400, 30 * 86400, 60 * 86400, 90 * 86400},
	}, []string{"policy"})
	grantLatency = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: prefix + "grant_latency_seconds", Help: "From the moment a slot was free and a node asked, to the node's grant.",
		Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60},
	})
)

func init() {
	metrics.Registry.MustRegister(nodesGauge, blockedGauge, limitGauge, openGauge, nextGauge, oldest, reboots, haltedGauge, gateGauge,
		runGauge, buildGauge, rebootsTotal, notificationsTotal, phaseSeconds, needAge, grantLatency)
	buildGauge.WithLabelValues(Version, runtime.Version()).Set(1)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
}

// observe sets the gauges of one policy from its plan.
func observe(policy *v1alpha1.RebootPolicy, p plan.Plan, w window.State) {
	name := policy.Name
	for state, count := range map[string]int32{
		"selected": p.Counts.Selected, "reporting": p.Counts.Reporting, "reboot_required": p.Counts.RebootRequired,
		"permitted": p.Counts.Permitted, "rebooting": p.Counts.Rebooting, "blocked": p.Counts.Blocked,
		"unavailable": p.Counts.Unavailable, "failed": p.Counts.Failed,
	} {
		nodesGauge.WithLabelValues(name, state).Set(float64(count))
	}
	refused, _ := p.Refused()
	nodesGauge.WithLabelValues(name, "node_write_refused").Set(float64(refused))
	if p.Agents != nil {
		nodesGauge.WithLabelValues(name, "agent_missing").Set(float64(p.Agents.Missing))
	}
	var near, passed int32
	if d := p.Deadlines; d != nil {
		near, passed = d.Near, d.Passed
	}
	nodesGauge.WithLabelValues(name, "deadline_near").Set(float64(near))
	nodesGauge.WithLabelValues(name, "deadline_passed").Set(float64(passed))
	blockedGauge.DeletePartialMatch(prometheus.Labels{"policy": name})
	for _, b := range p.Blocked {
		blockedGauge.WithLabelValues(name, string(b.Reason)).Set(float64(b.Count))
	}
	limitGauge.WithLabelValues(name).Set(float64(p.Limit))
	openGauge.WithLabelValues(name).Set(boolean(w.Open))
	haltedGauge.WithLabelValues(name).Set(boolean(p.Halt.Halted))
	nextGauge.WithLabelValues(name).Set(seconds(w.Next))
	gateGauge.DeletePartialMatch(prometheus.Labels{"policy": name})
	for _, g := range p.Gates {
		gateGauge.WithLabelValues(name, g.Name).Set(boolean(g.State != v1alpha1.GateUnreachable))
	}
	runGauge.DeletePartialMatch(prometheus.Labels{"policy": name})
	if p.RunWaits != "" {
		runGauge.WithLabelValues(name, string(p.RunHooks.Stage)).Set(1)
	}
	zero(name)
	oldest.set(name, p.OldestPending)
	reboots.set(name, p.UnderWay())
}

// zero makes a policy's counters: what begins at 1 is no increase to Prometheus, and a manager is new whenever its own node
// has been rebooted.
func zero(policy string) {
	for _, need := range append(needs[:], otherNeed) {
		for _, result := range []string{"succeeded", "aborted", "timed_out", "lost", "hook_failed"} {
			rebootsTotal.WithLabelValues(policy, engineLabel(need), result)
		}
	}
	for _, phase := range []string{"waiting", "drain", "reboot", "settle"} {
		phaseSeconds.WithLabelValues(policy, phase)
	}
	needAge.WithLabelValues(policy)
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
func observeUngoverned(decisions []plan.Decision) {
	const nobody = ""
	count := 0
	for _, d := range decisions {
		if d.Reason == v1alpha1.ReasonNoPolicy {
			count++
		}
	}
	if count == 0 {
		blockedGauge.DeletePartialMatch(prometheus.Labels{"policy": nobody})
		return
	}
	blockedGauge.WithLabelValues(nobody, string(v1alpha1.ReasonNoPolicy)).Set(float64(count))
}

// forget drops the series of a policy that is gone.
func forget(policy string) {
	oldest.forget(policy)
	reboots.forget(policy)
	labels := prometheus.Labels{"policy": policy}
	for _, g := range []*prometheus.GaugeVec{nodesGauge, blockedGauge, limitGauge, openGauge, nextGauge, haltedGauge, gateGauge, runGauge} {
		g.DeletePartialMatch(labels)
	}
	rebootsTotal.DeletePartialMatch(labels)
	notificationsTotal.DeletePartialMatch(labels)
	phaseSeconds.DeletePartialMatch(labels)
	needAge.DeletePartialMatch(labels)
}

func observeReboot(s *state, n *plan.Node, e v1alpha1.LedgerEntry) {
	name, p, most := s.Policy.Name, n.Progress, since(e.At.Time, s.Now)
	rebootsTotal.WithLabelValues(name, engineLabel(n.Grant.Need), "succeeded").Inc()
	observe := func(phase string, from, to time.Time) { // by the node's clock, which may be off
		phaseSeconds.WithLabelValues(name, phase).Observe(min(since(from, to), most))
	}
	if p.DrainStartedAt != nil {
		observe("drain", p.DrainStartedAt.Time, p.At.Time)
	}
	observe("reboot", p.At.Time, n.MaintenanceSince)
	observe("settle", n.MaintenanceSince, s.Now)
}

func countFailure(s *state, node, result string) {
	need := v1alpha1.Reason("")
	if i, ok := s.index[node]; ok {
		need = s.Nodes[i].RequiredReason // a grant that was never shown has shown nobody what it was for
		if g := s.Nodes[i].Grant; g != nil && g.Need != "" {
			need = g.Need
		}
	}
	rebootsTotal.WithLabelValues(s.Policy.Name, engineLabel(need), result).Inc()
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

// oldestPending reports how long the longest-waiting node of each policy has waited, computed at the scrape: between two
// reconciles nothing happens but time.
type oldestPending struct {
	desc  *prometheus.Desc
	mu    sync.Mutex
	since map[string]time.Time
}

func newOldestPending() *oldestPending {
	return &oldestPending{
		desc: prometheus.NewDesc(prefix+"oldest_pending_seconds", "How long the longest-waiting node has waited; 0: none waits.",
			[]string{"policy"}, nil),
		since: map[string]time.Time{},
	}
}

func (o *oldestPending) set(policy string, since time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since[policy] = since
}

func (o *oldestPending) forget(policy string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.since, policy)
}

// Describe implements prometheus.Collector.
func (o *oldestPending) Describe(descs chan<- *prometheus.Desc) { descs <- o.desc }

// Collect implements prometheus.Collector.
func (o *oldestPending) Collect(out chan<- prometheus.Metric) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for policy, at := range o.since {
		out <- prometheus.MustNewConstMetric(o.desc, prometheus.GaugeValue, since(at, time.Now()), policy)
	}
}

// rebootTimes reports, for each node that holds a grant and for no other, how long it has been in its phase and how long
// it is overdue. Both are computed at the scrape: between two reconciles nothing happens but time.
type rebootTimes struct {
	inProgress, overdue *prometheus.Desc

	mu       sync.Mutex
	byPolicy map[string]map[string]rebootTime // by node
}

// rebootTime is what is kept of a reboot: the reboot itself would keep the whole snapshot alive.
type rebootTime struct {
	phase           plan.RebootState
	since, failedAt time.Time
	reason          v1alpha1.Reason
}

func newRebootTimes() *rebootTimes {
	return &rebootTimes{
		inProgress: prometheus.NewDesc(prefix+"reboot_phase_seconds", "How long a node that holds a grant has been in its phase.",
			[]string{"policy", "node", "phase"}, nil),
		overdue: prometheus.NewDesc(prefix+"overdue_seconds", "How long a node that holds a grant is past its deadline; its slot is kept.",
			[]string{"policy", "node", "reason"}, nil),
		byPolicy: map[string]map[string]rebootTime{},
	}
}

// set takes in the reboots of a plan; what is released already is none any more.
func (m *rebootTimes) set(policy string, reboots []plan.Reboot) {
	byNode := make(map[string]rebootTime, len(reboots))
	for _, t := range reboots {
		if t.Node == nil || t.Action == plan.ReleaseEntry {
			continue
		}
		phase, at := t.State()
		byNode[t.Entry.Node] = rebootTime{phase: phase, since: at, failedAt: t.FailedAt, reason: t.Reason}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byPolicy[policy] = byNode
}

func (m *rebootTimes) forget(policy string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byPolicy, policy)
}

// Describe implements prometheus.Collector.
func (m *rebootTimes) Describe(descs chan<- *prometheus.Desc) {
	descs <- m.inProgress
	descs <- m.overdue
}

// Collect implements prometheus.Collector.
func (m *rebootTimes) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for policy, byNode := range m.byPolicy {
		for node, t := range byNode {
			out <- prometheus.MustNewConstMetric(m.inProgress, prometheus.GaugeValue, since(t.since, now), policy, node, string(t.phase))
			if !t.failedAt.IsZero() {
				out <- prometheus.MustNewConstMetric(m.overdue, prometheus.GaugeValue, since(t.failedAt, now), policy, node, string(t.reason))
			}
		}
	}
}
