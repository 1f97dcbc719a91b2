package engine

// Changes passes on what changes of what an engine says, and nothing twice.
type Changes struct {
	// Report takes the first report and each one that differs from the one before. Required.
	Report func(Report)
	// Reachable takes whether the engine can be asked, at first and on each change, before the report that says so.
	// Optional.
	Reachable func(bool)

	told      bool
	last      Report
	reachable bool
}

// Tell takes what the engine says now.
func (c *Changes) Tell(report Report, reachable bool) {
	first := !c.told
	c.told = true
	if c.Reachable != nil && (first || reachable != c.reachable) {
		c.Reachable(reachable)
	}
	c.reachable = reachable
	if first || report != c.last {
		c.last = report
		c.Report(report)
	}
}
