// Package message fits texts into the fields of the Kubernetes API.
package message

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNoteBytes is the longest note with which the API server accepts an event.
const MaxNoteBytes = 1024

// Shorten turns a text that somebody else wrote, such as a user of the host, a hook or a webhook,
// into one harmless line. It limits the text to a number of bytes of valid UTF-8, cuts it at the
// end of a character, and marks the cut with an ellipsis. The limit must have room for the ellipsis
// and one byte.
func Shorten(limit int, text string) string {
	text = strings.Map(inLine, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	end := limit - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// inLine replaces line breaks by blanks, because a text of several lines could look like several
// messages.
func inLine(r rune) rune {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', '\u0085', '\u2028', '\u2029':
		return ' '
	}
	return Harmless(r)
}

// Harmless returns the character, or U+FFFD if it changes how the text around it is shown: a
// control character, or one that sets the direction of writing.
func Harmless(r rune) rune {
	if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
		return unicode.ReplacementChar
	}
	return r
}

// Count returns a number with its noun, such as 1 node or 2 nodes.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Names returns List of names.
func Names[T ~string](names []T, most int) string {
	return List(names, most, func(name T) string { return string(name) })
}

// Few is the number of names in a sentence or a list, unless another limit applies.
const Few = 5

// Some returns the first few names. An event's note is limited to a kilobyte, and a fleet may have
// thousands of nodes.
func Some[T ~string](names []T) string { return Names(names, Few) }

// List returns the names of the first few things, and how many more there are.
func List[T any](things []T, most int, name func(T) string) string {
	named := things[:min(len(things), most)]
	names := make([]string, 0, len(named))
	for _, t := range named {
		names = append(names, name(t))
	}
	return AndMore(names, len(things)-len(names))
}

// AndMore returns a list of names, and how many more there are.
func AndMore(names []string, more int) string {
	text := strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
