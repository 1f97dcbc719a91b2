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
