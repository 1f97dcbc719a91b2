package host

import (
	"errors"
	"strings"

	"github.com/godbus/dbus/v5"
)

// maxErrorNameBytes is what D-Bus allows in a name.
const maxErrorNameBytes = 255

// ErrorName is the D-Bus name of an error that somebody answered, such as org.freedesktop.DBus.Error.AccessDenied: it may be
// told on, as the text of the error may not, which holds connection names and process IDs. An answer by what is no name is
// org.freedesktop.DBus.Error.Failed. Empty: nobody answered.
func ErrorName(err error) string {
	answer, ok := errors.AsType[dbus.Error](err)
	if !ok {
		return ""
	}
	if answer.Name == "" || len(answer.Name) > maxErrorNameBytes || strings.ContainsFunc(answer.Name, isNoPartOfName) {
		return "org.freedesktop.DBus.Error.Failed"
	}
	return answer.Name
}

func isNoPartOfName(r rune) bool { return !isAlphanumeric(r) && r != '.' && r != '_' }
