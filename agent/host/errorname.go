package host

import (
	"context"
	"errors"
	"strings"

	"github.com/godbus/dbus/v5"
)

// maxErrorNameBytes is what D-Bus allows in a name.
const maxErrorNameBytes = 255

// ErrorName is the D-Bus name of an error that somebody answered, such as org.freedesktop.DBus.Error.AccessDenied: it may be
// passed on, as the text of the error may not, which holds connection names and process IDs. An answer by what is no name is
// org.freedesktop.DBus.Error.Failed. Empty: nobody answered.
func ErrorName(err error) string {
	name, answered := answerName(err)
	if !answered {
		return ""
	}
	if name == "" || len(name) > maxErrorNameBytes || strings.ContainsFunc(name, isNoPartOfName) {
		return "org.freedesktop.DBus.Error.Failed"
	}
	return name
}

// answerName is the name as it came. A refusal of logind has taken it over from the answer.
func answerName(err error) (name string, answered bool) {
	if refusal, ok := errors.AsType[*RefusedError](err); ok {
		return refusal.Name, true
	}
	answer, ok := errors.AsType[dbus.Error](err)
	return answer.Name, ok
}

// IsBroken reports whether a call failed because its connection did: nobody answered, and not for want of time. The
// connection itself learns of it a moment later, when it reads.
func IsBroken(err error) bool {
	_, answered := answerName(err)
	return err != nil && !answered && !errors.Is(err, context.DeadlineExceeded)
}

func isNoPartOfName(r rune) bool { return !isAlphanumeric(r) && r != '.' && r != '_' }
