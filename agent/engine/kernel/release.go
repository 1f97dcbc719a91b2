package kernel

import (
	"cmp"
	"slices"
	"strings"
)

// release is the name of a kernel, as uname -r and the folders of modules have it. It is a version, and what the distribution adds to
// it. In 6.1.0-10-cloud-amd64 these are 6.1.0, 10 and cloud-amd64.
type release struct {
	text string
	// version is what the kernel's own developers count.
	version []string
	// build is all that follows.
	build []token
	// flavour distinguishes kernels that are no successors of each other. Empty: there is only one kind.
	flavour string
}

const (
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// parseRelease reads a release. What does not begin with a version, such as the name of another folder, is not one.
func parseRelease(text string) (release, bool) {
	rest := strings.TrimLeft(text, digits+".")
	version := strings.FieldsFunc(text[:len(text)-len(rest)], func(r rune) bool { return r == '.' })
	fits := len(text) <= maxReleaseBytes && strings.Trim(text, digits+letters+".+~_-") == ""
	if !fits || len(version) < 2 || strings.HasPrefix(text, ".") {
		return release{}, false
	}
	r := release{text: text, version: version}
	var words []string
	for _, segment := range strings.FieldsFunc(rest, func(r rune) bool { return !strings.ContainsRune(digits+letters, r) }) {
		tokens, flavour := parseSegment(segment)
		r.build = append(r.build, tokens...)
		words = append(words, flavour...)
	}
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	r.flavour = strings.Join(words, "-")
	return r, true
}

// compareReleases orders releases: by version, where 6.7 is 6.7.0, and then by build.
func compareReleases(a, b release) int {
	return cmp.Or(
		compareEach(a.version, b.version, "0", compareNumbers),
		compareEach(a.build, b.build, token{kind: end}, compareTokens),
	)
}

// compareEach compares element by element; behind the last one there is filler without end.
func compareEach[T any](a, b []T, filler T, compare func(a, b T) int) int {
	at := func(list []T, i int) T {
		if i < len(list) {
			return list[i]
		}
		return filler
	}
	for i := range max(len(a), len(b)) {
		if order := compare(at(a, i), at(b, i)); order != 0 {
			return order
		}
	}
	return 0
}

// compareNumbers compares decimal numbers of any length.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

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

// parseSegment reads what is between two separators, and reports which words of the flavour's name it has. Empty words
// do not count. A number within a word belongs to the word, as in amd64 or v8, except where it is known to count something.
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
