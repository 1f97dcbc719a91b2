package testenv_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

func TestNotShown_NamesTheTestThatIsSkipped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not-shown")
	t.Setenv("NOT_SHOWN", path)
	t.Run("skipped", func(t *testing.T) {
		testenv.NotShown(t, "make is missing")
		t.Error("it goes on")
	})
	text, err := os.ReadFile(path)
	if want := t.Name() + ": make is missing\n"; err != nil || string(text) != want {
		t.Errorf("%v, got %q, want %q", err, text, want)
	}
}
