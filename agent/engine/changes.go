package engine

// Presence is whether an engine is on the host and can be asked.
type Presence int

const (
	// Unclear means it is unknown: the bus cannot be reached, or has not been asked yet.
	Unclear Presence = iota
	// Missing means the engine is not on the host.
	Missing
	// Silent means the engine is there and cannot be asked.
	Silent
	// Answering means the engine is there and can be asked.
	Answering
)

// PresenceOf is that of an engine which is looked for in files: whether they are missing, and whether they cannot be read.
func PresenceOf(missing, unreadable bool) Presence {
	switch {
	case missing:
		return Missing
	case unreadable:
		return Silent
	}
	return Answering
}

// Changes passes on what changes of what an engine reports, and nothing twice.
type Changes struct {
	// Report takes the first report and each one that differs from the one before. Required.
	Report func(Report)
	// Reachable takes whether the engine can be asked, at first and on each change, before the report that depends on it.
	// Optional.
	Reachable func(bool)
	// Optional reports that --engines does not name the engine: until it was there once it is reported as Absent, and not as
	// Unknown, while it is Missing, and Reachable is not called.
	Optional bool
	// Seen reports that the engine was there, in this boot.
	Seen bool

	reported bool
	last     Report
	// asked is what Reachable took last. Nil: it has not been called.
	asked *bool
}

// Update takes what the engine reports now.
func (c *Changes) Update(report Report, presence Presence) {
	c.Seen = c.Seen || presence == Silent || presence == Answering
	if c.Optional && !c.Seen && presence == Missing && report.State == Unknown {
		report.State = Absent
	}
	c.reach(presence == Answering)
	if !c.reported || report != c.last {
		c.reported, c.last = true, report
		c.Report(report)
	}
}

func (c *Changes) reach(reachable bool) {
	if c.Reachable == nil || c.Optional && !c.Seen || c.asked != nil && *c.asked == reachable {
		return
	}
	c.asked = &reachable
	c.Reachable(reachable)
}
