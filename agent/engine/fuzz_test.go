package engine

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzMerge: whatever engines report, the message of all of them together fits into the Node, and no need is lost.
func FuzzMerge(f *testing.F) {
	f.Add("update_engine has installed version 4081.2.0; it runs after a reboot.", "\xff", []byte{0, 1})
	f.Add(strings.Repeat("ä", 300), strings.Repeat("\u20ac", 200), []byte{2, 2, 0})
	f.Add("", "", []byte{})
	f.Fuzz(func(t *testing.T, one, other string, states []byte) {
		all := []State{Needed, NotNeeded, Unknown, Absent}
		var reports []Report
		needed := false
		for i, b := range states {
			r := Report{Engine: "a", State: all[int(b)%len(all)], Message: []string{one, other}[i%2]}
			needed = needed || r.State == Needed
			reports = append(reports, r)
		}
		merged := Merge(reports)
		if (merged.State == Needed) != needed || merged.State == Absent {
			t.Errorf("%v make %v", reports, merged.State)
		}
		if !utf8.ValidString(merged.Message) || len(merged.Message) > 2*MaxMessageBytes && merged.Reason == "" {
			t.Errorf("message of %d bytes: %q", len(merged.Message), merged.Message)
		}
	})
}
