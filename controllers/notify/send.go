package notify

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// Timeout is how long a service may take to accept a message.
const Timeout = 10 * time.Second

// What is said of a panic in a service's code. The words of the panic itself may hold the address.
var (
	errAddress = errors.New("the address cannot be used: it does not have the form of its service")
	errService = errors.New("the code of the service failed on the message")
)

// send gives one message to the service of one address. The error has no part of the address, which holds credentials.
func send(ctx context.Context, address, title, text string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, fmt.Errorf("no answer within %s", Timeout))
	defer cancel()
	answer := make(chan error, 1) // an answer that comes too late has its place, and its goroutine ends
	go func() { answer <- give(address, title, text) }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// give makes the service of an address and has it send. Services panic on some addresses, and the manager has to outlive
// them: the service is asked in this goroutine, because nobody could recover in those that shoutrrr starts itself.
func give(address, title, text string) (err error) {
	broken := errAddress
	defer func() {
		if recover() != nil {
			err = broken
		}
	}()
	service, err := new(router.ServiceRouter).Locate(address)
	if err != nil {
		return fmt.Errorf("the address cannot be used: %s", redact(err, address))
	}
	broken = errService
	if err := service.Send(text, &types.Params{"title": title}); err != nil {
		return errors.New(redact(err, address))
	}
	return nil
}

// pieces are the words of an address that may be secret; a scheme is not.
var pieces = regexp.MustCompile(`[A-Za-z0-9]{3,}`)

// longest is the longest error that an event takes beside its other words, in bytes.
const longest = 300

// redact takes every word of the address out of an error: tokens stand in paths, in queries and in place of hosts.
func redact(err error, address string) string {
	text := err.Error()
	_, rest, found := strings.Cut(address, "://")
	if !found {
		rest = address
	}
	words := pieces.FindAllString(rest, -1)
	if plain, err := url.PathUnescape(rest); err == nil {
		words = append(words, pieces.FindAllString(plain, -1)...)
	}
	for _, word := range words {
		text = strings.ReplaceAll(text, word, "…")
	}
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
