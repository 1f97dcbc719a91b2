package notify

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/nicholas-fedor/shoutrrr"
	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// Timeout is how long a service may take to accept a message.
const Timeout = 10 * time.Second

// send gives one message to the service of one address. The error has no part of the address, which holds credentials.
func send(ctx context.Context, address, title, text string) error {
	sender, err := shoutrrr.CreateSender(address)
	if err != nil {
		return fmt.Errorf("the address cannot be used: %s", redact(err, address))
	}
	sender.Timeout = Timeout
	params := types.Params{"title": title}
	answer := sender.SendAsync(text, &params)
	select {
	case err = <-answer:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, router.ErrServiceTimeout):
		return fmt.Errorf("no answer within %s", Timeout)
	}
	return errors.New(redact(err, address))
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
