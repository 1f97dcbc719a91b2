package testenv

import (
	"fmt"
	"os"
	"strings"
)

// NotShown skips a test that this machine cannot run, and names it in the file of the variable NOT_SHOWN where there is one:
// hack/step.sh prints that file at the end of a run. It names a test once, whatever number of its cases is skipped.
func NotShown(t interface {
	Helper()
	Name() string
	Skip(why ...any)
	Fatal(args ...any)
}, why string,
) {
	t.Helper()
	if path := os.Getenv("NOT_SHOWN"); path != "" {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			test, _, _ := strings.Cut(t.Name(), "/")
			_, err = fmt.Fprintf(file, "%s: %s\n", test, why)
			_ = file.Close() // An error would have been one of the write.
		}
		if err != nil {
			t.Fatal(fmt.Errorf("noting what is not shown: %w", err))
		}
	}
	t.Skip(why)
}
