package controllers

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// maxNoteBytes is the most that the API server takes as the note of an event. It refuses the whole event for a longer one.
const maxNoteBytes = 1024

// brief is a recorder whose notes fit: services, hooks and whoever else is quoted in them have their own words, without a bound.
type brief struct{ events.EventRecorder }

// Eventf implements events.EventRecorder.
func (b brief) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) { //nolint:revive // the interface has seven
	text := fmt.Sprintf(note, args...)
	text = strings.ToValidUTF8(text[:min(len(text), maxNoteBytes)], "")
	b.EventRecorder.Eventf(regarding, related, kind, reason, action, "%s", text)
}
