package lifecycle

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/tools/events"
)

// The API server refuses longer notes, and notes that are cut within a character.
func TestRecorder_NotesFitIntoAnEvent(t *testing.T) {
	for name, tc := range map[string]struct{ why, want string }{
		"short":                  {"nobody answers", "nobody answers"},
		"of many services":       {strings.Repeat("x", 2000), strings.Repeat("x", 1021) + "…"},
		"cut within a character": {strings.Repeat("x", 1020) + "……", strings.Repeat("x", 1020) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(1)
			Recorder{recorder}.Eventf(nil, nil, "Warning", "NotificationFailed", "Notify", "%s", tc.why)
			got := strings.TrimPrefix(<-recorder.Events, "Warning NotificationFailed ")
			if got != tc.want || !utf8.ValidString(got) {
				t.Errorf("a note of %d bytes, want %d: %q", len(got), len(tc.want), got)
			}
		})
	}
}
