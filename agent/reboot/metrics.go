package reboot

import "github.com/prometheus/client_golang/prometheus"

// Metrics holds the metrics of the agent.
type Metrics struct {
	engineUp  *prometheus.GaugeVec
	malformed *prometheus.CounterVec
	evictions *prometheus.CounterVec
}

// NewMetrics registers the agent's metrics. It may be called once per registry.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		engineUp: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "reboot_operator_agent_engine_up",
			Help: "1 while the update engine responds, else 0.",
		}, []string{"engine"}),
		malformed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "reboot_operator_agent_engine_malformed_total",
			Help: "Messages of the update engine that could not be read and were ignored.",
		}, []string{"engine"}),
		evictions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "reboot_operator_evictions_total",
			Help: "Answers to evictions by result: evicted, deleted, blocked, gone or error.",
		}, []string{"policy", "result"}),
	}
	registry.MustRegister(m.engineUp, m.malformed, m.evictions)
	return m
}

// evicted counts the replies to the evictions of a policy's drains.
func (m *Metrics) evicted(policy string) func(result string) {
	return func(result string) { m.evictions.WithLabelValues(policy, result).Inc() }
}

// EngineUp records whether an engine can be queried.
func (m *Metrics) EngineUp(engine string) func(up bool) {
	return func(up bool) {
		value := 0.0
		if up {
			value = 1
		}
		m.engineUp.WithLabelValues(engine).Set(value)
	}
}

// Malformed counts messages of an engine that the agent cannot read.
func (m *Metrics) Malformed(engine string) func() { return m.malformed.WithLabelValues(engine).Inc }
