package notify

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/reboot-operator/reboot-operator/internal/message"
)

const (
	// longest is the longest error that an event takes beside its other words, in bytes.
	longest = 300
	// shortest is the shortest part of an address that is looked for in an error, in bytes: shorter parts would match ordinary text.
	shortest = 3
)

// tokens are what may be secret in a part of an address, where only some of the part is in an error.
var tokens = regexp.MustCompile(`[A-Za-z0-9]+`)

// redact takes every part of the address out of an error: tokens are in paths, in queries and in place of hosts. The
// scheme stays. A longer part goes before a shorter one, which may be within it and would leave the rest of it to be read.
func redact(text, address string) string {
	parts := partsOf(address)
	slices.SortStableFunc(parts, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, part := range parts {
		if len(part) >= shortest {
			text = strings.ReplaceAll(text, part, "…")
		}
	}
	return message.Shorten(longest, text)
}

// partsOf an address are what it consists of, in all forms, and the words of these.
func partsOf(address string) []string {
	var parts []string
	for _, part := range rawPartsOf(address) {
		for _, form := range formsOf(part) {
			parts = append(parts, form)
			parts = append(parts, tokens.FindAllString(form, -1)...)
		}
	}
	return parts
}

// rawPartsOf an address are the whole of it, its userinfo, password, path and query, and what is between separators.
func rawPartsOf(address string) []string {
	_, rest, found := strings.Cut(address, "://")
	if !found {
		rest = address
	}
	parts := []string{address, rest}
	if u, err := url.Parse(address); err == nil {
		password, _ := u.User.Password()
		parts = append(parts, u.User.String(), password, u.EscapedPath(), u.RawQuery)
	}
	return append(parts, strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("/?#@:&=", r) })...)
}

// formsOf are the ways in which a part may be in an error: as in the address, unescaped, escaped anew as a library does it
// for each place, and quoted.
func formsOf(part string) []string {
	plain := []string{part}
	for _, unescape := range []func(string) (string, error){url.PathUnescape, url.QueryUnescape} {
		if s, err := unescape(part); err == nil {
			plain = append(plain, s)
		}
	}
	forms := slices.Clone(plain)
	for _, s := range plain {
		quoted := strconv.Quote(s)
		path := url.URL{Path: s}
		forms = append(forms, quoted[1:len(quoted)-1], url.PathEscape(s), url.QueryEscape(s), url.User(s).String(), path.EscapedPath())
	}
	return forms
}
