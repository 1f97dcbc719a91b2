package folder

import (
	"errors"
	"io/fs"
)

// Reason is what went wrong with a file, without the path: that is this container's, not the host's.
func Reason(err error) string {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	return err.Error()
}
