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

// Style is what a text means.
type Style string

// Styles, as SGR parameters.
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

// Theme paints, or not.
type Theme struct {
	// Color is off in pipes and with NO_COLOR.
	Color bool
}

// Paint gives a text its style, and leaves it none of its own.
func (t Theme) Paint(style Style, text string) string {
	text = Harmless(text)
	if !t.Color || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Most texts come from nodes, hooks and alerts. Some are in JSON in annotations, where an escape sequence is plain letters until it
// is decoded. They are read in many places, which also feed the planner and -o json, so they are not changed there. Paint, Table and
// Wrap make each text harmless where it becomes text for people, before they add sequences of their own. Line is applied last and
// lets only the theme's sequences through, so a text that bypassed those three can have a colour at most.

// Harmless is a text that a terminal only shows, with its tabs and ends of lines. U+FFFD replaces each other control character (C0,
// DEL, C1), each that opens or ends another direction of letters, and each byte that is no UTF-8. U+FFFD takes one column.
func Harmless(text string) string { return strings.Map(harmless, text) }

func harmless(r rune) rune {
	if r == '\n' || r == '\t' {
		return r
	}
	return message.Harmless(r)
}

// Escaped is the same JSON with the characters that Harmless replaces written as escape sequences of JSON. Encoders escape C0 only,
// and a YAML parser refuses the others.
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

// part is a harmless text without line ends. With them a node could print lines of its own, for example about other nodes.
func part(text string) string { return Harmless(blanks.Replace(text)) }

var blanks = strings.NewReplacer("\n", " ", "\t", " ", "\r", " ")

// painted are the sequences that Paint adds, and no others.
var painted = regexp.MustCompile("\x1b\\[(?:" + strings.Join([]string{
	"0", string(Strong), string(Quiet), string(Good), string(Wait), string(Busy), string(Away), string(Bad),
}, "|") + ")m")

// Line is a line as it may be printed: one line, with the colours of the theme where it has any, and harmless otherwise.
func (t Theme) Line(line string) string {
	if !t.Color {
		return part(line)
	}
	var b strings.Builder
	end := 0
	for _, at := range painted.FindAllStringIndex(line, -1) {
		b.WriteString(part(line[end:at[0]]) + line[at[0]:at[1]])
		end = at[1]
	}
	return b.String() + part(line[end:])
}

// Lines are lines as they may be printed.
func (t Theme) Lines(lines []string) []string {
	safe := make([]string, len(lines))
	for i, line := range lines {
		safe[i] = t.Line(line)
	}
	return safe
}

// Colourless writes what has no colours, such as errors, and makes it harmless.
func Colourless(out io.Writer) io.Writer { return colourless{out} }

type colourless struct{ out io.Writer }

// Write implements io.Writer. What it is given is written as a whole: it is a message.
func (c colourless) Write(text []byte) (int, error) {
	if _, err := io.WriteString(c.out, Harmless(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Fit makes a text exactly so many columns wide. What is cut off ends in an ellipsis.
func Fit(text string, width int) string {
	text = Cut(text, width)
	return text + strings.Repeat(" ", max(0, width-textWidth(text)))
}

// Cut makes a text at most so many columns wide. What is cut off ends in an ellipsis.
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

// textWidth is how many columns of a terminal a text takes.
func textWidth(text string) int {
	sum := 0
	for _, r := range text {
		sum += runeWidth(r)
	}
	return sum
}

// runeWidth is how many columns a character takes: letters of East Asia and most pictures two, what joins the letter before none.
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

// Seconds is a duration for people, in at most six columns: 0.3 s, 99.9 s, 2m05s, 3h07m.
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

// Some names the first five, and how many more there are.
func Some(names []string) string {
	return message.Names(names, 5)
}
