package engine

// Changes forwards the reports of an engine, but only if they differ from the previous one.
type Changes struct {
	// Report receives the first report and each report that differs from the one before. Required.
	Report func(Report)
	// Reachable receives whether the engine can be queried: once at the start and then on each
	// change, before the report that depends on it. Optional.
	Reachable func(bool)
	// Optional is true if --engines does not name the engine. An optional engine that is Missing
	// and was never seen is reported as Absent instead of Unknown, and Reachable is not called for
	// it.
	Optional bool
	// Seen is true once the engine was seen in this boot.
	Seen bool

	// presence and why hold the arguments of the last call of Reach, and reached is true after the
	// first one.
	presence Presence
	why      string
	reached  bool

	reported bool
	last     Report
	// asked holds the last argument of Reachable, or nil before the first call.
	asked *bool
}

// Reach records whether the engine can be queried, and if not, the reason. An unreachable engine is
// Unknown for that reason unless it has reported a need: a staged update is on the host's disk and
// outlives both the engine and the bus. An empty why leaves reports as they are.
func (c *Changes) Reach(presence Presence, why string) {
	c.presence, c.why, c.reached = presence, why, true
	c.Seen = c.Seen || presence == Silent || presence == Answering
	reachable := presence == Answering
	if c.Reachable == nil || c.Optional && !c.Seen || c.asked != nil && *c.asked == reachable {
		return
	}
	c.asked = &reachable
	c.Reachable(reachable)
}

// Update records the current report of the engine. Nothing is forwarded until Reach was called,
// which happens on the first contact with the engine or its end.
func (c *Changes) Update(report Report) {
	if c.why != "" && report.State != Needed {
		report = Unreachable(report.Engine, c.why)
	}
	if c.Optional && !c.Seen && c.presence == Missing && report.State == Unknown {
		report.State = Absent
	}
	if c.reached && (!c.reported || report != c.last) {
		c.reported, c.last = true, report
		c.Report(report)
	}
}
