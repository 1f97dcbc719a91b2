package controllers

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// flightTimes reports, for each node that holds a grant and for no other, how long it has been in its phase and how long
// it is overdue. Both are computed at the scrape: between two reconciles nothing happens but time.
type flightTimes struct {
	inFlight, overdue *prometheus.Desc

	mu       sync.Mutex
	byPolicy map[string]map[string]flightTime // by node
}

// flightTime is what is kept of a flight: the flight itself would keep the whole snapshot alive.
type flightTime struct {
	phase           plan.Phase
	since, failedAt time.Time
	reason          v1alpha1.Reason
}

func newFlightTimes() *flightTimes {
	return &flightTimes{
		inFlight: prometheus.NewDesc(prefix+"in_flight_seconds", "How long a node that holds a grant has been in its phase.",
			[]string{"policy", "node", "phase"}, nil),
		overdue: prometheus.NewDesc(prefix+"overdue_seconds", "How long a node that holds a grant is past its deadline; its slot is kept.",
			[]string{"policy", "node", "reason"}, nil),
		byPolicy: map[string]map[string]flightTime{},
	}
}

// set takes in the flights of a plan; what is released already is none any more.
func (m *flightTimes) set(policy string, flights []plan.Flight) {
	byNode := make(map[string]flightTime, len(flights))
	for _, t := range flights {
		if t.Node == nil || t.Action == plan.ReleaseEntry {
			continue
		}
		phase, at := t.Phase()
		byNode[t.Entry.Node] = flightTime{phase: phase, since: at, failedAt: t.FailedAt, reason: t.Reason}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byPolicy[policy] = byNode
}

func (m *flightTimes) forget(policy string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byPolicy, policy)
}

// Describe implements prometheus.Collector.
func (m *flightTimes) Describe(descs chan<- *prometheus.Desc) {
	descs <- m.inFlight
	descs <- m.overdue
}

// Collect implements prometheus.Collector.
func (m *flightTimes) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for policy, byNode := range m.byPolicy {
		for node, t := range byNode {
			out <- prometheus.MustNewConstMetric(m.inFlight, prometheus.GaugeValue, since(t.since, now), policy, node, string(t.phase))
			if !t.failedAt.IsZero() {
				out <- prometheus.MustNewConstMetric(m.overdue, prometheus.GaugeValue, since(t.failedAt, now), policy, node, string(t.reason))
			}
		}
	}
}
