package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"

	"github.com/reboot-operator/reboot-operator/internal/message"
)

// timeout is the time that a service has to accept a message.
const timeout = 10 * time.Second

// Errors for an address without a service, and for a panic in a service's code, whose own message
// may contain the address.
var (
	errScheme  = errors.New("the address cannot be used: shoutrrr has no service of its scheme")
	errAddress = errors.New("the address cannot be used: it does not have the form of its service")
	errService = errors.New("the code of the service failed on the message")
)

// service is one address. Many services of shoutrrr do not set a deadline and do not support one,
// so a server that never answers keeps a goroutine and a connection for each message. After
// mostUnanswered of them it gets no further message until one of them ends.
type service struct {
	address    string
	unanswered chan struct{}
}

const mostUnanswered = 8

func newService(address string) *service {
	return &service{address: address, unanswered: make(chan struct{}, mostUnanswered)}
}

// send sends one message to the service. The error never contains parts of the address, which holds
// credentials.
func (s *service) send(ctx context.Context, title, text string) error {
	if ctx.Err() != nil { // otherwise the message would be reported as not delivered again
		return context.Cause(ctx)
	}
	select {
	case s.unanswered <- struct{}{}:
	default:
		return fmt.Errorf("%d messages before this one have no answer yet", mostUnanswered)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	answer := make(chan error, 1) // buffered, so that a late answer does not leak the goroutine
	go func() {
		defer func() { <-s.unanswered }()
		answer <- give(s.address, title, text)
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// give creates the service of an address and sends the message. Services panic on some addresses,
// and the manager has to survive that. The service runs in this goroutine, because a panic in a
// goroutine that shoutrrr starts cannot be recovered.
func give(address, title, text string) (err error) {
	broken := errAddress
	defer func() {
		if recover() != nil {
			err = broken
		}
	}()
	service, err := new(router.ServiceRouter).Locate(address)
	if err != nil {
		return unusable(service, err)
	}
	broken = errService
	if err := service.Send(text, &types.Params{"title": title}); err != nil {
		return errors.New(redact(err.Error(), address))
	}
	return nil
}

// unusable says why an address has no service. Errors of shoutrrr contain the address, so no part
// of them is reported.
func unusable(service types.Service, err error) error {
	switch {
	case errors.Is(err, router.ErrUnknownService):
		return errScheme
	case errors.Is(err, router.ErrInitializeFailed):
		return fmt.Errorf("the address cannot be used: it does not have the form of service %s, or that service did not accept it", service.GetID())
	}
	return errAddress
}

const (
	// longest is the longest error that fits into an event with its other text, in bytes.
	longest = 300
	// shortest is the length of the shortest part of an address that is redacted, in bytes. Shorter
	// parts would match ordinary text.
	shortest = 3
)

// tokens matches the parts of an address that may be secret, in case only some of them are in an
// error.
var tokens = regexp.MustCompile(`[A-Za-z0-9]+`)

// redact removes every part of the address from an error, because secrets may be in paths, in
// queries and in place of hosts. The scheme stays. Longer parts are removed first, because a
// shorter part within them would leave the rest readable.
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

// partsOf returns the parts of an address in all forms, and their tokens.
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

// rawPartsOf returns the whole address, its userinfo, password, path and query, and the parts
// between separators.
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

// formsOf returns the forms that a part may have in an error: as in the address, unescaped, quoted,
// and escaped as libraries do.
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
