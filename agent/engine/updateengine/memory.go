package updateengine

import "github.com/reboot-operator/reboot-operator/agent/engine"

// memory keeps the state across connections and reports what changes.
type memory struct {
	state     state
	report    func(engine.Report)
	reachable func(bool)

	// begun says that something was reported: the first input always is.
	begun bool
	// broken is why the last connection broke, as it was logged.
	broken string
}

func (m *memory) add(in input) {
	before, first := m.state, !m.begun
	m.state, m.begun = next(before, in), true
	reachable := m.state.unreachable == ""
	if m.reachable != nil && (first || reachable != (before.unreachable == "")) {
		m.reachable(reachable)
	}
	if report := m.state.report(); first || report != before.report() {
		m.report(report)
	}
}
