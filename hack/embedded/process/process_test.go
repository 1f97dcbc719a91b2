package process_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

// starterEnv makes this test's own program a starter that is going to be killed: it is the folder for its log.
const starterEnv = "PROCESS_TEST_STARTER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(starterEnv); dir != "" {
		starter(dir)
	}
	os.Exit(m.Run())
}

// starter starts a program, prints its process ID, and waits to be killed.
func starter(dir string) {
	p, err := process.NewGroup(dir).Start(process.Program{Name: "sleep", Path: "/bin/sleep", Args: []string{"600"}})
	if err != nil {
		panic(err)
	}
	println(p.Pid())
	select {}
}

func start(t *testing.T, g *process.Group, script string) *process.Process {
	t.Helper()
	p, err := g.Start(process.Program{Name: "sh", Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"X=from the starter"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestGroup_LogsWhatTheProgramPrintsAndHowItEnded(t *testing.T) {
	g := process.NewGroup(t.TempDir())
	defer g.Stop(t.Context())
	p := start(t, g, `echo "$X"; echo no >&2; exit 3`)
	<-p.Done()
	want := "sh ended: exit status 3\n  from the starter\n  no"
	if err := p.ExitError(); err == nil || err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestGroup_StopAsksThenKills(t *testing.T) {
	cases := map[string]struct{ script, want string }{
		"a program that obeys":     {`trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done`, "exit status 0"},
		"a program that is stupid": {`trap '' TERM; echo up; while :; do sleep 0.01; done`, "signal: killed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := process.NewGroup(t.TempDir())
			p := start(t, g, tc.script)
			until(t, "the program to be up", func() bool { return p.Tail(1) == "  up" })
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			g.Stop(ctx)
			if !gone(p.Pid()) || !strings.Contains(p.ExitError().Error(), tc.want) {
				t.Errorf("gone %t, %v, want %q", gone(p.Pid()), p.ExitError(), tc.want)
			}
			if _, err := g.Start(process.Program{Name: "late", Path: "/bin/true"}); !errors.Is(err, process.ErrStopped) {
				t.Errorf("a start after the stop: %v", err)
			}
		})
	}
}

func TestGroup_KeepsTheTerminalsInterruptFromItsPrograms(t *testing.T) {
	g := process.NewGroup(t.TempDir())
	defer g.Stop(t.Context())
	p := start(t, g, "sleep 600")
	if id, err := syscall.Getpgid(p.Pid()); err != nil || id != p.Pid() {
		t.Errorf("process group %d (%v), want its own, %d", id, err, p.Pid())
	}
}

// A container's processes end with its first; so do those of a program that represents one.
func TestGroup_AProgramsOwnProgramsEndWithIt(t *testing.T) {
	for name, end := range map[string]func(p *process.Process){
		"killed":          func(p *process.Process) { p.Kill() },
		"asked to end":    func(p *process.Process) { p.Stop(t.Context()) },
		"ended by itself": func(p *process.Process) { <-p.Done() },
	} {
		t.Run(name, func(t *testing.T) {
			g := process.NewGroup(t.TempDir())
			defer g.Stop(t.Context())
			script := "sleep 600 & echo $!; wait"
			if name == "ended by itself" {
				script = "sleep 600 & echo $!"
			}
			p := start(t, g, script)
			until(t, "the program to start its own", func() bool { return strings.TrimSpace(p.Tail(1)) != "" })
			pid, err := strconv.Atoi(strings.TrimSpace(p.Tail(1)))
			if err != nil {
				t.Fatal(err)
			}
			end(p)
			until(t, "the program's own program to end", func() bool { return endedOrZombie(pid) })
		})
	}
}

func TestGroup_AKilledStarterTakesItsProgramsAlong(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self)
	command.Env = append(os.Environ(), starterEnv+"="+t.TempDir())
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 32)
	n, err := stderr.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil || gone(pid) {
		t.Fatalf("no program runs: %q, %v", text[:n], err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // Its error is the kill.
	until(t, "the program to end with its starter", func() bool { return endedOrZombie(pid) })
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return done(), nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// endedOrZombie also takes a process that nobody has waited for: whose child it became is not known here.
func endedOrZombie(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(text), ") Z ")
}

func TestMemory_PeakIsTheMostThereWas(t *testing.T) {
	g := process.NewGroup(t.TempDir())
	defer g.Stop(t.Context())
	p := start(t, g, "sleep 600")
	m, err := p.Memory()
	if err != nil {
		t.Fatal(err)
	}
	if m.Anonymous <= 0 || m.Resident < m.Anonymous || m.Peak < m.Resident {
		t.Errorf("memory %+v, want 0 < anonymous <= resident <= peak", m)
	}
}
