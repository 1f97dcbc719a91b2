package kernel

import (
	"cmp"
	"slices"
	"strings"
)

// release is the name of a kernel, as uname -r and the folders of modules have it: a version, and whatever the
// distribution counts and distinguishes by. In 6.1.0-10-cloud-amd64 these are 6.1.0, 10 and cloud-amd64.
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

// parseRelease reads a release. What does not begin with a version, such as the name of another folder, is none.
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

// newerThan compares kernels of one flavour.
func (r release) newerThan(other release) bool { return compareReleases(r, other) > 0 }

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

// newest is the newest kernel of a flavour; the zero release where there is none.
func newest(releases []release, flavour string) (newest release, found bool) {
	for _, r := range releases {
		if r.flavour == flavour && (!found || r.newerThan(newest)) {
			newest, found = r, true
		}
	}
	return newest, found
}

func contains(releases []release, r release) bool {
	return slices.ContainsFunc(releases, func(other release) bool { return other.text == r.text })
}
