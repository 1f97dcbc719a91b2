package engine

// Changes passes on what changes of what an engine reports, and nothing twice.
type Changes struct {
	// Report takes the first report and each one that differs from the one before. Required.
	Report func(Report)
	// Reachable takes whether the engine can be asked, at first and on each change, before the report that depends on it.
	// Optional.
	Reachable func(bool)
	// Optional reports that --engines does not name the engine. While it is Missing and was never there, it is reported as Absent, not as
	// Unknown, and Reachable is not called.
	Optional bool
	// Seen reports that the engine was there, in this boot.
	Seen bool

	// presence and why are what Reach took last; it was not called before reached.
	presence Presence
	why      string
	reached  bool

	reported bool
	last     Report
	// asked is what Reachable took last. Nil: it has not been called.
	asked *bool
}

// Reach takes whether the engine can be asked, and why not. While it cannot, the engine is Unknown because of that, unless it has
// reported a need. A need is on the host's disk, and outlives the engine and the bus. An empty why leaves reports as they are.
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

// Update takes what the engine reports now. Nothing is passed on before Reach is called, which the first call of the engine, or its
// end, brings about.
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
