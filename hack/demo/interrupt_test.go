package main

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// asDemo makes this test's own program the demo.
const asDemo = "DEMO_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(asDemo) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func childrenOf(t *testing.T, pid int) map[int]string {
	t.Helper()
	children, err := process.Children(pid)
	if err != nil {
		t.Fatal(err)
	}
	return children
}

// awaitLine reads what the demo prints up to a line with this text in it, or to the end, and returns all of it.
func awaitLine(lines *bufio.Scanner, text string) (printed []string) {
	for lines.Scan() {
		printed = append(printed, lines.Text())
		if strings.Contains(lines.Text(), text) {
			break
		}
	}
	return printed
}

// expectNothingLeft checks that the demo of this process ID has ended its processes and removed its files.
func expectNothingLeft(t *testing.T, pid int, children map[int]string) {
	t.Helper()
	children[pid] = "the demo"
	for id, name := range children {
		if err := syscall.Kill(id, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s (%d) is left", name, id)
		}
	}
	for _, dir := range []string{os.TempDir(), "/dev/shm"} {
		left, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("reboot-operator.%d.*", pid)))
		if err != nil || len(left) > 0 {
			t.Errorf("files are left: %v %v", left, err)
		}
	}
}

// An interrupt in the middle of a reboot ends every process, removes every file and is reported by the exit code.
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
	printed := awaitLine(lines, "Draining")
	pid := demo.Process.Pid
	children := childrenOf(t, pid)
	// etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, 2 managers, 2 agents, 2 dbus-daemons.
	if len(children) < 10 {
		t.Errorf("only %d processes run: %v\n%s", len(children), children, strings.Join(printed, "\n"))
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
	expectNothingLeft(t, pid, children)
}

// Whoever ends make alone, as a job control or a CI system does, ends the demo.
func TestMake_ATerminationLeavesNothing(t *testing.T) {
	program, err := exec.LookPath("make")
	if err != nil {
		testenv.NotShown(t, "there is no make")
	}
	run := exec.CommandContext(t.Context(), program, "demo", "ENGINE=sentinel", "NODES=2")
	run.Dir, run.Stderr = testenv.Root(), os.Stderr
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Nothing but the signal is to reach anybody.
	stdout, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	printed := awaitLine(lines, "manager and agent, built") // the control plane is starting
	demos := childrenOf(t, run.Process.Pid)
	pid := slices.Min(append(slices.Collect(maps.Keys(demos)), math.MaxInt))
	if len(demos) != 1 || demos[pid] != "demo" {
		_ = syscall.Kill(-run.Process.Pid, syscall.SIGTERM)
		t.Fatalf("make has children %v, want the demo alone\n%s", demos, strings.Join(printed, "\n"))
	}
	children := childrenOf(t, pid)
	if err := run.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	printed = awaitLine(lines, "everything has been stopped")
	_ = run.Wait() // That it was terminated is no news.
	if len(printed) == 0 || !strings.Contains(printed[len(printed)-1], "everything has been stopped") {
		t.Errorf("last words: %s", strings.Join(printed, "\n"))
	}
	expectNothingLeft(t, pid, children)
}
