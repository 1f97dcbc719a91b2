package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
)

// unansweredError is a call that gave no status.
type unansweredError struct {
	method string
	// malformed reports that there was an answer.
	malformed bool
	cause     error
}

func (e *unansweredError) Error() string { return fmt.Sprintf("calling %s: %v", e.method, e.cause) }
func (e *unansweredError) Unwrap() error { return e.cause }

// IsUnknownMethod reports whether a Call failed because the service is of a version without the method.
func IsUnknownMethod(err error) bool { return host.ErrorName(err) == busDaemon+".Error.UnknownMethod" }

// isBroken reports whether a call failed because the connection did.
func isBroken(err error) bool {
	failed, ok := errors.AsType[*unansweredError](err)
	return ok && !failed.malformed && host.IsBroken(failed.cause)
}

// unanswered reports that the service is there and has reported no status.
func (s *session) unanswered(ctx context.Context, err error) {
	failed, ok := errors.AsType[*unansweredError](err)
	if ok && failed.malformed {
		Ignore(ctx, s.watch.Malformed, failed.cause)
	} else {
		logr.FromContextOrDiscard(ctx).V(1).Info("Got no answer", "reason", err.Error())
	}
	s.Silent = true
	s.listener.Lost(s.watch.Title+" "+why(err), engine.Silent)
}

// why makes half a sentence of an error.
func why(err error) string {
	failed, ok := errors.AsType[*unansweredError](err)
	if !ok {
		return "cannot be read."
	}
	if failed.malformed {
		return fmt.Sprintf("answers %s with something that is no status.", failed.method)
	}
	return fmt.Sprintf("does not answer %s: %s.", failed.method, cmp.Or(host.ErrorName(err), "no reply in time"))
}
