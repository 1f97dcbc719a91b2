package kernel

import (
	"cmp"
	"slices"
	"strings"
)

// kind of a token. Where two releases first differ in kind, the greater one is newer: 6.7.0-rc1 < 6.7.0 < 6.7.0-a < 6.7.0-1,
// as package managers have it.
type kind int

const (
	// candidate is an rc, which comes before what it is a candidate for.
	candidate kind = iota
	// end is where there is no token.
	end
	// word is text.
	word
	// number is compared as one.
	number
)

// token is a part of what follows the version.
type token struct {
	kind kind
	text string
}

func compareTokens(a, b token) int {
	if order := cmp.Compare(a.kind, b.kind); order != 0 {
		return order
	}
	if a.kind == number {
		return compareNumbers(a.text, b.text)
	}
	return cmp.Compare(a.text, b.text)
}

// parseSegment reads what is between two separators, and reports which words of the flavour's name it has; empty ones
// are none. A number within a word belongs to the word, as in amd64 or v8, except where it is known to count something.
func parseSegment(segment string) (tokens []token, flavour []string) {
	if strings.Trim(segment, digits) == "" {
		return []token{{number, segment}}, nil
	}
	if before, after, found := strings.Cut(segment, "rc"); found && strings.Trim(before+after, digits) == "" {
		return present(token{number, before}, token{candidate, "rc"}, token{number, after}), nil
	}
	name := segment[:strings.IndexAny(segment+"0", digits)]
	tail := strings.TrimLeft(segment[len(name):], digits)
	counted := present(token{word, name}, token{number, segment[len(name) : len(segment)-len(tail)]}, token{word, tail})
	switch name {
	case "amzn", "azl", "bpo", "cm", "deb", "el", "fc", "ph":
		// A release of the distribution: the kernels of the next one are successors.
		return counted, []string{tail}
	case "arch", "hardened", "rt", "zen":
		// A flavour that counts its own patches.
		return counted, []string{name, tail}
	}
	return []token{{word, segment}}, []string{segment}
}

// present leaves out what is empty.
func present(tokens ...token) []token {
	return slices.DeleteFunc(tokens, func(t token) bool { return t.text == "" })
}
