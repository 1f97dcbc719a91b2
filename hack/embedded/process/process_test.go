package process_test

import (
	"context"
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

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

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
	cases := map[string]struct {
		script string
		within time.Duration
		want   string
	}{
		"a program that ends at SIGTERM": {`trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done`, time.Minute, "exit status 0"},
		"a program that ignores SIGTERM": {`trap '' TERM; echo up; while :; do sleep 0.01; done`, 300 * time.Millisecond, "signal: killed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := process.NewGroup(t.TempDir())
			p := start(t, g, tc.script)
			until(t, "the program to be up", func() bool { return p.Tail(1) == "  up" })
			ctx, cancel := context.WithTimeout(t.Context(), tc.within)
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

// The processes of a container end with its first one. A program that stands for a container must
// behave the same.
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

// starterEnv makes this test binary the starter that gets killed. Its value is the folder for the
// log.
const starterEnv = "PROCESS_STARTER"

func TestGroup_AKilledStarterTakesItsProgramsAlong(t *testing.T) {
	if dir := os.Getenv(starterEnv); dir != "" {
		start(t, process.NewGroup(dir), "echo $$; exec sleep 600")
		select {}
	}
	dir := t.TempDir()
	starter := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	starter.Env = append(os.Environ(), starterEnv+"="+dir)
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	until(t, "the program to run", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "sh.log"))
		_, err := fmt.Sscanln(string(text), &pid)
		return err == nil
	})
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("process group %d (%v), want its own, %d: a terminal's interrupt is for the starter alone", group, err, pid)
	}
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = starter.Wait() // the error is the kill
	until(t, "the program to end", func() bool { return endedOrZombie(pid) })
}

func until(t *testing.T, description string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return done(), nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v", description, err)
	}
}

// endedOrZombie reports whether a process has ended, including zombies, because its parent may not
// wait for it.
func endedOrZombie(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(text), ") Z ")
}

func TestProcess_MeasuresItself(t *testing.T) {
	g := process.NewGroup(t.TempDir())
	defer g.Stop(t.Context())
	p := start(t, g, "while :; do :; done")
	until(t, "CPU time to be used", func() bool {
		used, err := p.CPU()
		if err != nil {
			t.Fatal(err)
		}
		return used > 0
	})
	m, err := p.Memory()
	if err != nil {
		t.Fatal(err)
	}
	if m.Anonymous <= 0 || m.Resident < m.Anonymous || m.Peak < m.Resident {
		t.Errorf("memory %+v, want 0 < anonymous <= resident <= peak", m)
	}
}

func TestStarterIsGone(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	const prefix = "reboot-something."
	for name, want := range map[string]bool{
		fmt.Sprintf("%s%d.node-1", prefix, ended.Process.Pid): true,
		fmt.Sprintf("%s%d.node-1", prefix, os.Getpid()):       false,
		fmt.Sprintf("other.%d.node-1", ended.Process.Pid):     false,
		prefix + "x.node-1":  false,
		prefix + "-5.node-1": false,
	} {
		if got := process.StarterIsGone(prefix, name); got != want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
