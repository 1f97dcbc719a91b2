package kernel

import (
	"cmp"
	"slices"
	"strings"
)

// release is the name of a kernel, as in uname -r and the folders of modules: a version and what
// the distribution adds to it. In 6.1.0-10-cloud-amd64 the parts are 6.1.0, 10 and cloud-amd64.
type release struct {
	text string
	// version is the version of the upstream kernel.
	version []string
	// build is the rest.
	build []token
	// flavour tells apart kernels that do not replace each other. It is empty if there is only one
	// kind.
	flavour string
}

const (
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// parseRelease reads a release. It refuses text that does not begin with a version, such as the
// name of another folder.
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

// compareReleases orders releases by version, with 6.7 equal to 6.7.0, and then by build.
func compareReleases(a, b release) int {
	return cmp.Or(
		compareEach(a.version, b.version, "0", compareNumbers),
		compareEach(a.build, b.build, token{kind: end}, compareTokens),
	)
}

// compareEach compares element by element. The shorter list is padded with filler.
func compareEach[T any](a, b []T, filler T, compare func(a, b T) int) int {
	element := func(list []T, i int) T {
		if i < len(list) {
			return list[i]
		}
		return filler
	}
	for i := range max(len(a), len(b)) {
		if order := compare(element(a, i), element(b, i)); order != 0 {
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

// kind is the kind of a token. If two releases first differ in kind, the greater kind is newer, as
// in package managers: 6.7.0-rc1 < 6.7.0 < 6.7.0-a < 6.7.0-1.
type kind int

const (
	// candidate is an rc, which is older than the release itself.
	candidate kind = iota
	// end pads the shorter of two releases.
	end
	// word is text.
	word
	// number is compared as a number.
	number
)

// token is one part of the text after the version.
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

// parseSegment reads the text between two separators, and returns the words that belong to the
// flavour. Empty words do not count. A number within a word belongs to the word, as in amd64 or v8,
// unless it is known to count something.
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
		// This number is a release of the distribution: the next release replaces this kernel.
		return counted, []string{tail}
	case "arch", "hardened", "rt", "zen":
		// This flavour counts its own patches.
		return counted, []string{name, tail}
	}
	return []token{{word, segment}}, []string{segment}
}

// present returns the words that are not empty.
func present(tokens ...token) []token {
	return slices.DeleteFunc(tokens, func(t token) bool { return t.text == "" })
}
