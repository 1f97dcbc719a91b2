package controllers

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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
