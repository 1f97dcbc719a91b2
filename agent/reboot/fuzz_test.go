package reboot

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
)

// FuzzInhibited: whoever holds a lock, for whatever reason, the sentence about it fits into the Node.
func FuzzInhibited(f *testing.F) {
	f.Add("backup", "a snapshot is being taken", uint8(1))
	f.Add("\xff", strings.Repeat("ä", 300), uint8(3))
	f.Add("", "", uint8(200))
	f.Fuzz(func(t *testing.T, who, why string, locks uint8) {
		blocking := make([]host.Inhibitor, 0, locks)
		for i := range locks {
			blocking = append(blocking, host.Inhibitor{Who: who + string(rune('a'+i)), Why: why})
		}
		text := inhibited(blocking)
		if (text == "") != (locks == 0) || len(text) > engine.MaxMessageBytes || !utf8.ValidString(text) {
			t.Errorf("%d locks, %d bytes: %q", locks, len(text), text)
		}
	})
}
