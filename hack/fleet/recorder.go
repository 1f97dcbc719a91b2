package fleet

import (
	"sync"

	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/hack/judge/feed"
)

// Recorder is the timeline of the Nodes of a feed. It has every revision, which an informer's cache would not.
type Recorder struct {
	Feed *feed.Feed

	mu   sync.Mutex
	line timeline.Timeline
	read int
}

// Read is what has happened so far.
func (r *Recorder) Read() timeline.Story {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.Feed.Since(r.read) {
		r.read++
		if c.Node != nil && !c.Gone {
			r.line.Observe(c.At, c.Node)
		}
	}
	return r.line.Story()
}
