package hosttest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestBus_StartsInAFolderTooDeepForASocket(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 120))
	must(t, os.Mkdir(deep, 0o700))
	bus, err := Start(deep)
	must(t, err)
	conn, err := bus.Connect()
	must(t, err)
	_ = conn.Close()
	must(t, bus.Stop())
	if _, err := os.Stat(bus.dir); !os.IsNotExist(err) {
		t.Errorf("the temporary folder is left: %v", err)
	}
}

func TestBus_StopEndsTheDaemon(t *testing.T) {
	bus := StartFor(t)
	pid := bus.daemon.Pid()
	must(t, bus.Stop())
	must(t, bus.Stop())
	if _, err := bus.Connect(); err == nil {
		t.Error("the bus still answers")
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is left: %v", pid, err)
	}
}
