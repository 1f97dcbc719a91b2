package message

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzShorten(f *testing.F) {
	f.Add(8, "held by backup")
	f.Add(256, strings.Repeat("\u20ac", 100))
	f.Add(4, "\xff\xfe\xfd\xfc")
	f.Fuzz(func(t *testing.T, limit int, message string) {
		if limit < 4 {
			t.Skip("there is no room for an ellipsis and one byte")
		}
		got := Shorten(limit, message)
		if len(got) > limit || !utf8.ValidString(got) {
			t.Errorf("%q in %d bytes is %q", message, limit, got)
		}
		if utf8.ValidString(message) && !strings.HasPrefix(message, strings.TrimSuffix(got, "…")) {
			t.Errorf("%q became %q", message, got)
		}
		if again := Shorten(limit, got); again != got {
			t.Errorf("%q became %q", got, again)
		}
	})
}
