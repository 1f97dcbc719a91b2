package terminal

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSeconds(t *testing.T) {
	want := map[time.Duration]string{
		0: "0.0 s", 50 * time.Millisecond: "0.1 s", 99949 * time.Millisecond: "99.9 s", 99950 * time.Millisecond: "1m40s",
		125 * time.Second: "2m05s", 59*time.Minute + 59600*time.Millisecond: "1h00m", 187 * time.Minute: "3h07m",
	}
	got := map[time.Duration]string{}
	for d := range want {
		got[d] = Seconds(d)
		if len(got[d]) > 6 {
			t.Errorf("%q has more than six columns", got[d])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCutAndFit(t *testing.T) {
	cases := map[string]struct {
		width    int
		cut, fit string
	}{
		"abc":      {3, "abc", "abc"},
		"abcd":     {3, "ab…", "ab…"},
		"ab cdef":  {4, "ab…", "ab… "},
		"äöü":      {5, "äöü", "äöü  "},
		"whatever": {0, "", ""},
	}
	for text, tc := range cases {
		if got := Cut(text, tc.width); got != tc.cut {
			t.Errorf("Cut(%q, %d) is %q, want %q", text, tc.width, got, tc.cut)
		}
		if got := Fit(text, tc.width); got != tc.fit {
			t.Errorf("Fit(%q, %d) is %q, want %q", text, tc.width, got, tc.fit)
		}
	}
}

func TestLine_HasNothingButTheColoursOfItsTheme(t *testing.T) {
	colours := Theme{Color: true}
	cases := map[string]struct {
		theme      Theme
		text, want string
	}{
		"text stays as it is":              {colours, "ä → ✓ 日本\u200d", "ä → ✓ 日本\u200d"},
		"colours of the theme":             {colours, "\x1b[1;31mx\x1b[0m y", "\x1b[1;31mx\x1b[0m y"},
		"a theme without colours has none": {Theme{}, "\x1b[1;31mx\x1b[0m", "\uFFFD[1;31mx\uFFFD[0m"},
		"colours of another theme":         {colours, "\x1b[8mx\x1b[1;32m", "\uFFFD[8mx\uFFFD[1;32m"},
		"one colour inside another":        {colours, "\x1b[\x1b[0m2J", "\uFFFD[\x1b[0m2J"},
		"a title and a cleared screen":     {colours, "\x1b]0;x\x07\x1b[2J", "\uFFFD]0;x\uFFFD\uFFFD[2J"},
		"C0 and DEL":                       {colours, "\x00\b\v\x7f", "\uFFFD\uFFFD\uFFFD\uFFFD"},
		"C1":                               {colours, "\u0080\u009b2J\u009f\u00a0", "\uFFFD\uFFFD2J\uFFFD\u00a0"},
		"a byte that is CSI in Latin-1":    {colours, "\x9b2J", "\uFFFD2J"},
		"reversed letters":                 {colours, "\u202a\u202e\u2066\u2069", "\uFFFD\uFFFD\uFFFD\uFFFD"},
		"line breaks within a line":        {colours, "a\nb\tc\r\nd", "a b c  d"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]string{tc.want}, tc.theme.Lines([]string{tc.text})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPaint_IsNotFaked tests that a text cannot contain sequences that look like the theme's.
func TestPaint_IsNotFaked(t *testing.T) {
	theme, fake := Theme{Color: true}, "\x1b[32m✓ fine\x1b[0m\nn9"
	got := map[string][]string{
		"paint":      {theme.Paint(Bad, fake)},
		"no colours": {Theme{}.Paint(Bad, fake)},
		"table":      Look{Theme: theme}.Table([]string{"", ""}, [][]Cell{{{Text: fake, Style: Bad}, {Text: "x"}}, {{Text: strings.Repeat("y", 20)}, {Text: fake}}})[1:],
		"wrap":       append(Wrap(fake, 0), Wrap(fake, 12)...),
	}
	const harmless = "\uFFFD[32m✓ fine\uFFFD[0m"
	want := map[string][]string{
		"paint":      {"\x1b[1;31m" + harmless + "\nn9\x1b[0m"},
		"no colours": {harmless + "\nn9"},
		"table":      {"\x1b[1;31m" + harmless + " n9  \x1b[0m  x", "yyyyyyyyyyyyyyyyyyyy  " + harmless + " n9"},
		"wrap":       {harmless + " n9", "\uFFFD[32m✓", "fine\uFFFD[0m n9"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestColourless_KeepsLinesAndNothingElse(t *testing.T) {
	var out strings.Builder
	n, err := Colourless(&out).Write([]byte("error: \x1b[31mx\n\ty\u009b\n"))
	if want := "error: \uFFFD[31mx\n\ty\uFFFD\n"; out.String() != want || err != nil || n != 19 {
		t.Errorf("wrote %d bytes, %q, %v; want %q", n, out.String(), err, want)
	}
}
