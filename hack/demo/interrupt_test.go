package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// asDemo makes this test binary act as the demo.
const asDemo = "DEMO_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(asDemo) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// A signal must end every process of the demo, remove all its files and give an exit code. The
// cases are SIGINT in the middle of a reboot, and SIGTERM to make only, as from a CI system, while
// the control plane starts.
func TestDemo_ASignalLeavesNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		command []string
		line    string
		signal  syscall.Signal
		// processes is the minimum number of processes at that time.
		processes int
	}{
		// etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, 2 managers, 2
		// agents, 2 dbus-daemons.
		"the demo": {[]string{self, "--nodes", "2"}, "Draining", syscall.SIGINT, 10},
		"make":     {[]string{"make", "demo", "ENGINE=sentinel", "NODES=2"}, "manager and agent, built", syscall.SIGTERM, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(tc.command[0]); err != nil {
				testenv.NotShown(t, err.Error())
			}
			started := exec.CommandContext(t.Context(), tc.command[0], tc.command[1:]...)
			started.Dir, started.Stderr, started.Env = testenv.Root(), os.Stderr, append(os.Environ(), asDemo+"=1")
			started.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that only the signal reaches the processes
			stdout, err := started.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := started.Start(); err != nil {
				t.Fatal(err)
			}
			var printed []string
			lines := bufio.NewScanner(stdout)
			for lines.Scan() {
				if printed = append(printed, lines.Text()); strings.Contains(lines.Text(), tc.line) {
					break
				}
			}
			demo := started.Process.Pid
			children := childrenOf(t, demo)
			if name == "make" {
				if len(children) != 1 {
					_ = syscall.Kill(-demo, syscall.SIGTERM)
					t.Fatalf("make has children %v, want the demo alone\n%s", children, strings.Join(printed, "\n"))
				}
				for demo = range children {
					children = childrenOf(t, demo)
				}
			}
			if len(children) < tc.processes {
				t.Errorf("only %d processes run: %v\n%s", len(children), children, strings.Join(printed, "\n"))
			}
			if err := started.Process.Signal(tc.signal); err != nil {
				t.Fatal(err)
			}
			last := ""
			for lines.Scan() {
				last = lines.Text()
			}
			_ = started.Wait() // make ends because of the signal
			if code := started.ProcessState.ExitCode(); name == "the demo" && code != fleet.ExitInterrupted {
				t.Errorf("exit code %d, want %d", code, fleet.ExitInterrupted)
			}
			if diff := cmp.Diff("  everything has been stopped", last); diff != "" {
				t.Errorf("last words (-want +got):\n%s", diff)
			}
			expectNothingLeft(t, demo, children)
		})
	}
}

func childrenOf(t *testing.T, pid int) map[int]string {
	t.Helper()
	children, err := process.Children(pid)
	if err != nil {
		t.Fatal(err)
	}
	return children
}

// expectNothingLeft checks that a demo has ended its processes and removed its files.
func expectNothingLeft(t *testing.T, pid int, children map[int]string) {
	t.Helper()
	children[pid] = "the demo"
	for id, name := range children {
		if err := syscall.Kill(id, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s (%d) is left", name, id)
		}
	}
	for _, dir := range []string{os.TempDir(), "/dev/shm"} {
		remaining, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("reboot-operator.%d.*", pid)))
		if err != nil || len(remaining) > 0 {
			t.Errorf("files are left: %v %v", remaining, err)
		}
	}
}
