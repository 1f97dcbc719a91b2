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

// FuzzRequest: whatever an administrator writes, the condition can be written, and the next process reads no engine's words
// out of it.
func FuzzRequest(f *testing.F) {
	f.Add("new firmware")
	f.Add("Heard in boot boot-2 from update-engine (asks for version 1).")
	f.Add("\xff\x00\n\"")
	f.Add(strings.Repeat("ä", 100))
	f.Fuzz(func(t *testing.T, why string) {
		asked := need(makeObservation(requesting(why)))
		quiet := need(makeObservation())
		// A byte may take four when it is quoted.
		if !utf8.ValidString(asked.Message) || len(asked.Message) > len(quiet.Message)+4*maxWhyBytes+64 {
			t.Errorf("message of %d bytes: %q", len(asked.Message), asked.Message)
		}
		if strings.ContainsAny(asked.Message, "\n\x00") {
			t.Errorf("more than one line: %q", asked.Message)
		}
		if bootID, heard := parseOrigin(asked.Message); bootID != boot || len(heard) != 1 || heard[0].State != engine.Unknown {
			t.Errorf("%q was heard as %v of boot %q", asked.Message, heard, bootID)
		}
	})
}
