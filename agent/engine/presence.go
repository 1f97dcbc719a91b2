package engine

// Presence says whether an engine is on the host and can be queried.
type Presence int

const (
	// Unclear means the presence is unknown: the bus cannot be reached, or was not queried yet.
	Unclear Presence = iota
	// Missing means the engine is not on the host.
	Missing
	// Silent means the engine is there but cannot be queried.
	Silent
	// Answering means the engine is there and can be queried.
	Answering
)

// PresenceOf returns the presence of an engine that consists of files, from whether those files are
// missing or unreadable.
func PresenceOf(missing, unreadable bool) Presence {
	switch {
	case missing:
		return Missing
	case unreadable:
		return Silent
	}
	return Answering
}
