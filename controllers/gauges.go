package controllers

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/attention"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// gauges report the last plan of each policy. The series of a plan change together, so that a
// scrape never misses some of them. Durations are computed at the scrape, because between two plans
// only time passes.
type gauges struct {
	nodes, blocked, limit, open, next, halted, run, gate, attention *prometheus.Desc
	// oldest is the waiting time of the policy's node that has waited longest. inProgress and
	// overdue have a series only for nodes that hold a grant.
	oldest, inProgress, overdue *prometheus.Desc

	mu       sync.Mutex
	byPolicy map[string]policyGauges
	// ungoverned are the series of nodes without a policy.
	ungoverned []prometheus.Metric
}

// policyGauges holds what is needed of a plan. The plan itself would keep the whole snapshot in
// memory.
type policyGauges struct {
	series  []prometheus.Metric
	oldest  time.Time
	reboots map[string]rebootTime // by node
}

type rebootTime struct {
	phase           underway.RebootState
	since, failedAt time.Time
	reason          v1alpha1.Reason
}

func newGauges() *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+name, help, labels, nil)
	}
	return &gauges{
		nodes:      desc("nodes", "Nodes of the policy by state.", "policy", "state"),
		blocked:    desc("blocked_nodes", "Nodes that need a reboot and may not now, by reason.", "policy", "reason"),
		limit:      desc("limit", "maxUnavailable in nodes.", "policy"),
		open:       desc("window_open", "1 while windows and blackouts allow a reboot to start.", "policy"),
		next:       desc("window_next_transition_timestamp_seconds", "When the windows next open or close, or 0 if never.", "policy"),
		halted:     desc("halted", "1 while the policy is halted after failures.", "policy"),
		run:        desc("run_hooks_waiting", "1 while hooks of a run have not approved, by stage; absent while none runs.", "policy", "stage"),
		gate:       desc("gate_up", "1 while the gate responds to queries, else 0; absent while no node waits for it.", "policy", "gate"),
		attention:  desc("attention", "How many things of each kind need a person.", "policy", "kind"),
		oldest:     desc("oldest_pending_seconds", "How long the longest-waiting node has waited, or 0 if none waits.", "policy"),
		inProgress: desc("reboot_phase_seconds", "How long a node that holds a grant has been in its phase.", "policy", "node", "phase"),
		overdue:    desc("overdue_seconds", "How long a node that holds a grant is past its deadline; its slot is kept.", "policy", "node", "reason"),
		byPolicy:   map[string]policyGauges{},
	}
}

// set stores what a policy's plan reports, without reboots that are already released.
func (g *gauges) set(policy string, p plan.Plan, w window.State, items ...attention.Item) {
	gauges := policyGauges{series: append(g.seriesOf(policy, p, w), g.attentionOf(policy, items)...), oldest: p.OldestPending, reboots: map[string]rebootTime{}}
	for _, r := range p.UnderWay() {
		if r.Node != nil && r.Action != underway.ReleaseEntry {
			phase, since := r.State()
			gauges.reboots[r.Entry.Node] = rebootTime{phase: phase, since: since, failedAt: r.FailedAt, reason: r.Reason}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.byPolicy[policy] = gauges
}

// attentionOf counts what needs a person, by kind.
func (g *gauges) attentionOf(policy string, items []attention.Item) []prometheus.Metric {
	counts := map[attention.Kind]int{}
	for _, kind := range attention.Kinds {
		if !(attention.Item{Kind: kind}).Chosen() {
			counts[kind] = 0
		}
	}
	for _, a := range items {
		if !a.Chosen() {
			counts[a.Kind]++
		}
	}
	series := make([]prometheus.Metric, 0, len(counts))
	for kind, count := range counts {
		series = append(series, gauge(g.attention, float64(count), policy, string(kind)))
	}
	return series
}

// seriesOf returns the series that do not change until the next plan.
func (g *gauges) seriesOf(policy string, p plan.Plan, w window.State) []prometheus.Metric {
	var series []prometheus.Metric
	add := func(desc *prometheus.Desc, value float64, labels ...string) {
		series = append(series, gauge(desc, value, append([]string{policy}, labels...)...))
	}
	refused, _ := p.Refused()
	counts := map[string]int32{
		"selected": p.Counts.Selected, "reporting": p.Counts.Reporting, "reboot_required": p.Counts.RebootRequired,
		"granted": p.Counts.Granted, "rebooting": p.Counts.Rebooting, "blocked": p.Counts.Blocked,
		"unavailable": p.Counts.Unavailable, "failed": p.Counts.Failed, "node_write_refused": int32(refused),
		"deadline_near": 0, "deadline_passed": 0, "limit_held": 0,
	}
	if p.Stall != nil {
		counts["limit_held"] = int32(len(p.Stall.Nodes))
	}
	if p.Agents != nil {
		counts["agent_missing"] = p.Agents.Missing
	}
	if d := p.Deadlines; d != nil {
		counts["deadline_near"], counts["deadline_passed"] = d.Near, d.Passed
	}
	for state, count := range counts {
		add(g.nodes, float64(count), state)
	}
	for _, b := range p.Blocked {
		add(g.blocked, float64(b.Count), string(b.Reason))
	}
	for _, asked := range p.Gates {
		add(g.gate, boolean(asked.State != v1alpha1.GateUnreachable), asked.Name)
	}
	if p.RunWaits != "" {
		add(g.run, 1, string(p.RunHooks.Stage))
	}
	add(g.limit, float64(p.Limit))
	add(g.open, boolean(w.Open))
	add(g.next, seconds(timing.Earliest(w.OpensAt, w.ClosesAt)))
	add(g.halted, boolean(p.Halt.Halted))
	return series
}

// setUngoverned counts the nodes that need a reboot and have no policy. Their policy label is
// empty.
func (g *gauges) setUngoverned(decisions []plan.Decision) {
	count := 0
	for _, d := range decisions {
		if d.Reason == v1alpha1.ReasonNoPolicy {
			count++
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ungoverned = nil
	if count > 0 {
		g.ungoverned = []prometheus.Metric{gauge(g.blocked, float64(count), "", string(v1alpha1.ReasonNoPolicy))}
	}
}

// wasOverdue reports whether the reboot of a node was past its deadline in the last plan.
func (g *gauges) wasOverdue(policy, node string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.byPolicy[policy].reboots[node].failedAt.IsZero()
}

func (g *gauges) forget(policy string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.byPolicy, policy)
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		g.nodes, g.blocked, g.limit, g.open, g.next, g.halted, g.run, g.gate, g.attention, g.oldest, g.inProgress, g.overdue,
	} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.ungoverned {
		out <- m
	}
	now := time.Now()
	for policy, gauges := range g.byPolicy {
		for _, m := range gauges.series {
			out <- m
		}
		out <- gauge(g.oldest, since(gauges.oldest, now), policy)
		for node, r := range gauges.reboots {
			out <- gauge(g.inProgress, since(r.since, now), policy, node, string(r.phase))
			if !r.failedAt.IsZero() {
				out <- gauge(g.overdue, since(r.failedAt, now), policy, node, string(r.reason))
			}
		}
	}
}

func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
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
