package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// Timeout is how long a service may take to accept a message.
const Timeout = 10 * time.Second

// What is reported of an address that has no service, and of a panic in a service's code, whose own words may hold the address.
var (
	errScheme  = errors.New("the address cannot be used: shoutrrr has no service of its scheme")
	errAddress = errors.New("the address cannot be used: it does not have the form of its service")
	errService = errors.New("the code of the service failed on the message")
)

// service is one address. Many services of shoutrrr set no deadline and take none, so a server that never answers keeps a goroutine
// and a connection for each message: mostUnanswered of them, and then it is sent no more until one of them ends.
type service struct {
	address    string
	unanswered chan struct{}
}

const mostUnanswered = 8

func newService(address string) *service {
	return &service{address: address, unanswered: make(chan struct{}, mostUnanswered)}
}

// send gives one message to the service. The error has no part of the address, which holds credentials.
func (s *service) send(ctx context.Context, title, text string) error {
	if ctx.Err() != nil { // a message that is not waited for any more would be reported again as one that was not delivered
		return context.Cause(ctx)
	}
	select {
	case s.unanswered <- struct{}{}:
	default:
		return fmt.Errorf("%d messages before this one have no answer yet", mostUnanswered)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, fmt.Errorf("no answer within %s", Timeout))
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

// give makes the service of an address and has it send. Services panic on some addresses, and the manager has to outlive
// them: the service is asked in this goroutine, because a panic in one that shoutrrr starts itself cannot be recovered.
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

// unusable states why an address has no service. The words of shoutrrr hold the address itself, so none of them is reported.
func unusable(service types.Service, err error) error {
	switch {
	case errors.Is(err, router.ErrUnknownService):
		return errScheme
	case errors.Is(err, router.ErrInitializeFailed):
		return fmt.Errorf("the address cannot be used: it does not have the form of service %s, or that service did not accept it", service.GetID())
	}
	return errAddress
}
