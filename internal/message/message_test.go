package message

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestShorten(t *testing.T) {
	const limit = 256
	cases := map[string]struct{ message, want string }{
		"short text is kept":                     {"nothing to do", "nothing to do"},
		"the limit itself is kept":               {strings.Repeat("x", 256), strings.Repeat("x", 256)},
		"longer text ends in an ellipsis":        {strings.Repeat("x", 257), strings.Repeat("x", 253) + "…"},
		"a character is never cut in two":        {strings.Repeat("ä", 129), strings.Repeat("ä", 126) + "…"},
		"bytes that are not UTF-8 are replaced":  {"a\xffb", "a\uFFFDb"},
		"lines become one":                       {"a\r\nb\tc\u2028d\u0085e", "a  b c d e"},
		"control characters are replaced":        {"a\x1b[31mb\x00c\u009bd", "a\uFFFD[31mb\uFFFDc\uFFFDd"},
		"directions of letters are replaced":     {"a\u202eb\u2066c\u200fd\u061ce", "a\uFFFDb\uFFFDc\uFFFDd\uFFFDe"},
		"letters of all languages are kept":      {"日本語, עברית, é, 👩‍💻", "日本語, עברית, é, 👩‍💻"},
		"replacing them does not pass the limit": {strings.Repeat("a\xff", 200), strings.Repeat("a\uFFFD", 63) + "a…"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Shorten(limit, tc.message)
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if len(got) > limit || !utf8.ValidString(got) {
				t.Errorf("got %d bytes, valid UTF-8 %v", len(got), utf8.ValidString(got))
			}
		})
	}
}

func FuzzShorten(f *testing.F) {
	f.Add(8, "held by backup")
	f.Add(256, strings.Repeat("\u20ac", 100))
	f.Add(4, "\xff\xfe\xfd\xfc")
	f.Fuzz(func(t *testing.T, limit int, message string) {
		if limit < 4 {
			t.Skip("the limit leaves no room for an ellipsis and one byte")
		}
		got := Shorten(limit, message)
		if len(got) > limit || !utf8.ValidString(got) {
			t.Errorf("%q in %d bytes is %q", message, limit, got)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u202e' }) {
			t.Errorf("%q became %q", message, got)
		}
		replaced := func(r rune) bool { return inLine(r) != r }
		if utf8.ValidString(message) && !strings.ContainsFunc(message, replaced) && !strings.HasPrefix(message, strings.TrimSuffix(got, "…")) {
			t.Errorf("%q became %q", message, got)
		}
		if again := Shorten(limit, got); again != got {
			t.Errorf("%q became %q", got, again)
		}
	})
}
