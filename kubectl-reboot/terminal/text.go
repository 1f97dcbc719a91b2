package terminal

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode"

	eastasian "golang.org/x/text/width"

	"github.com/reboot-operator/reboot-operator/internal/message"
)

// Style is the meaning of a text.
type Style string

// The styles are SGR parameters.
const (
	Plain  Style = ""
	Strong Style = "1"
	Quiet  Style = "2"
	Good   Style = "32"
	Wait   Style = "33"
	Busy   Style = "36"
	Away   Style = "35"
	Bad    Style = "1;31"
)

// Theme adds styles to text.
type Theme struct {
	// Color is off in pipes and with NO_COLOR.
	Color bool
}

// Paint adds a style to a text, after removing the text's own control sequences.
func (t Theme) Paint(style Style, text string) string {
	text = Harmless(text)
	if !t.Color || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Most texts come from nodes, hooks and alerts, partly as JSON in annotations, in which an escape
// sequence is not visible before it is decoded. Many places read them, also for the planner and -o
// json, so they are not changed there. Instead Paint, Table and Wrap make each text harmless before
// they add their own sequences. Line comes last and only lets the theme's sequences through, so
// that a text that bypassed the other three can at most have a color.

// Harmless returns a text that a terminal only displays. It keeps tabs and line breaks. It replaces
// other control characters (C0, DEL, C1), characters that change the text direction, and bytes that
// are not UTF-8 with U+FFFD, which takes one column.
func Harmless(text string) string { return strings.Map(harmless, text) }

func harmless(r rune) rune {
	if r == '\n' || r == '\t' {
		return r
	}
	return message.Harmless(r)
}

// Escaped replaces the characters that Harmless replaces with JSON escape sequences. Encoders only
// escape C0, and YAML parsers refuse the others.
func Escaped(json string) string {
	var b strings.Builder
	for _, r := range json {
		if r == harmless(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// part makes a text harmless and removes line breaks, with which a node could print lines that look
// like ours.
func part(text string) string { return Harmless(blanks.Replace(text)) }

var blanks = strings.NewReplacer("\n", " ", "\t", " ", "\r", " ")

// painted matches exactly the sequences that Paint adds.
var painted = regexp.MustCompile("\x1b\\[(?:" + strings.Join([]string{
	"0", string(Strong), string(Quiet), string(Good), string(Wait), string(Busy), string(Away), string(Bad),
}, "|") + ")m")

// Line makes a line safe to print: a single line, without sequences other than the theme's colors.
func (t Theme) Line(line string) string {
	if !t.Color {
		return part(line)
	}
	var b strings.Builder
	end := 0
	for _, span := range painted.FindAllStringIndex(line, -1) {
		b.WriteString(part(line[end:span[0]]) + line[span[0]:span[1]])
		end = span[1]
	}
	return b.String() + part(line[end:])
}

// Lines makes lines safe to print.
func (t Theme) Lines(lines []string) []string {
	safe := make([]string, len(lines))
	for i, line := range lines {
		safe[i] = t.Line(line)
	}
	return safe
}

// Colourless returns a writer for output without colors, such as errors, that makes everything
// harmless.
func Colourless(out io.Writer) io.Writer { return colourless{out} }

type colourless struct{ out io.Writer }

// Write implements io.Writer. Each call must contain a whole message.
func (c colourless) Write(text []byte) (int, error) {
	if _, err := io.WriteString(c.out, Harmless(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Fit makes a text exactly as wide as given, and marks a cut with an ellipsis.
func Fit(text string, width int) string {
	text = Cut(text, width)
	return text + strings.Repeat(" ", max(0, width-textWidth(text)))
}

// Cut makes a text at most as wide as given, and marks a cut with an ellipsis.
func Cut(text string, width int) string {
	if width <= 0 {
		return ""
	}
	if textWidth(text) <= width {
		return text
	}
	used := 0
	end := strings.IndexFunc(text, func(r rune) bool {
		used += runeWidth(r)
		return used >= width
	})
	return strings.TrimRight(text[:end], " ") + "…"
}

// textWidth returns the number of columns that a text takes.
func textWidth(text string) int {
	sum := 0
	for _, r := range text {
		sum += runeWidth(r)
	}
	return sum
}

// runeWidth returns the number of columns that a character takes: two for East Asian letters and
// most pictures, and none for combining characters.
func runeWidth(r rune) int {
	if unicode.In(harmless(r), unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch eastasian.LookupRune(r).Kind() {
	case eastasian.EastAsianWide, eastasian.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// Seconds formats a duration in at most six columns: 0.3 s, 99.9 s, 2m05s, 3h07m.
func Seconds(d time.Duration) string {
	whole := d.Round(time.Second)
	switch {
	case d < 99950*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case whole < time.Hour:
		return fmt.Sprintf("%dm%02ds", whole/time.Minute, whole%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", whole/time.Hour, whole%time.Hour/time.Minute)
}
