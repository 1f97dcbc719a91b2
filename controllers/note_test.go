package controllers

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/tools/events"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// The API server refuses longer notes, and such that are cut within a character.
func TestBrief_NotesFitIntoAnEvent(t *testing.T) {
	for name, tc := range map[string]struct{ why, want string }{
		"short":                  {"nobody answers", "nobody answers"},
		"of many services":       {strings.Repeat("x", 2000), strings.Repeat("x", 1024)},
		"cut within a character": {strings.Repeat("x", 1023) + "…", strings.Repeat("x", 1023)},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(1)
			notificationFailed(brief{recorder}, "workers", tc.why)
			got := strings.TrimPrefix(<-recorder.Events, "Warning "+v1alpha1.EventNotificationFailed+" ")
			if got != tc.want || !utf8.ValidString(got) {
				t.Errorf("a note of %d bytes, want %d: %q", len(got), len(tc.want), got)
			}
		})
	}
}
