package terminal

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Most texts come from nodes, hooks and alerts. Some are in JSON in annotations, where an escape sequence is plain letters until it
// is decoded. They are read in many places, which also feed the planner and -o json, so they are not changed there. Paint, Table and
// Wrap make each text harmless where it becomes text for people, before they add sequences of their own. Line is applied last and
// lets only the theme's sequences through, so a text that bypassed those three can have a colour at most.

// Harmless is a text that makes a terminal do nothing but what to show and where lines end: other control characters (C0, DEL,
// C1) and those that turn the direction of letters are shown as U+FFFD, each in one column. So are bytes that are no UTF-8.
func Harmless(text string) string { return strings.Map(harmless, text) }

func harmless(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case r < ' ', r >= 0x7F && r <= 0x9F, r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
		return '\uFFFD'
	}
	return r
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
