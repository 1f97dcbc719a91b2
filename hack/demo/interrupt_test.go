package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// asDemo makes this test's own program the demo.
const asDemo = "DEMO_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(asDemo) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// process is a running process: its ID and its name.
type process struct {
	pid  int
	name string
}

// childrenOf are the processes whose parent is pid.
func childrenOf(t *testing.T, pid int) []process {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var children []process
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // It has ended meanwhile.
		}
		open, shut := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
		fields := strings.Fields(string(text[shut+1:]))
		if id, err := strconv.Atoi(string(bytes.TrimSpace(text[:open]))); err == nil && fields[1] == strconv.Itoa(pid) {
			children = append(children, process{id, string(text[open+1 : shut])})
		}
	}
	return children
}

// An interrupt in the middle of a reboot ends every process, removes every file and is told by the exit code.
func TestRun_AnInterruptLeavesNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	demo := exec.CommandContext(t.Context(), self, "--nodes", "2")
	demo.Env = append(os.Environ(), asDemo+"=1")
	demo.Stderr = os.Stderr
	stdout, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
		if strings.Contains(lines.Text(), "draining") {
			break
		}
	}
	pid := demo.Process.Pid
	children := childrenOf(t, pid)
	// etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, 2 managers, 2 agents, 2 dbus-daemons.
	if len(children) < 10 {
		t.Errorf("only %d processes run: %v\n%s", len(children), children, strings.Join(said, "\n"))
	}
	interrupted := time.Now()
	if err := demo.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	var exit *exec.ExitError
	if err := demo.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("ended with %v, want exit code %d", err, exitInterrupted)
	}
	t.Logf("everything was stopped within %s", time.Since(interrupted).Round(time.Millisecond))
	if diff := cmp.Diff("  everything has been stopped", last); diff != "" {
		t.Errorf("last words (-want +got):\n%s", diff)
	}
	for _, child := range children {
		if err := syscall.Kill(child.pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s (%d) is left", child.name, child.pid)
		}
	}
	for _, dir := range []string{os.TempDir(), "/dev/shm"} {
		left, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("reboot-operator.%d.*", pid)))
		if err != nil || len(left) > 0 {
			t.Errorf("files are left: %v %v", left, err)
		}
	}
}
