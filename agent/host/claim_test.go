package host

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
)

// claiming is a Claim that runs on a real folder, with a clock that only the test moves.
type claiming struct {
	*Claim

	t     *testing.T
	clock *clocktesting.FakeClock
	ctx   context.Context //nolint:containedctx // it lives as long as the test's harness
	stop  func()

	mu  sync.Mutex
	log []string
}

// claim starts a Claim on the host at root.
func claim(t *testing.T, root string) *claiming {
	t.Helper()
	c := &claiming{t: t, clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	c.Claim = &Claim{HostRoot: root, Clock: c.clock}
	ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), funcr.New(func(_, line string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, message, _ := strings.Cut(line, `"msg"="`)
		message, _, _ = strings.Cut(message, `"`)
		c.log = append(c.log, message)
	}, funcr.Options{})))
	c.ctx = ctx
	var running sync.WaitGroup
	running.Go(func() { must(t, c.Start(ctx)) })
	c.stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(c.stop)
	return c
}

// until waits for the file to say something, while minutes pass.
func (c *claiming) until(want string) {
	c.t.Helper()
	deadline := time.After(time.Minute)
	for {
		got, _ := os.ReadFile(confOf(c.HostRoot)) // It may be missing.
		if string(got) == want && isHeld(c.t, c.HostRoot) {
			return
		}
		c.clock.Step(time.Minute)
		select {
		case <-deadline:
			c.t.Fatalf("the file says %q, want %q; log %v", got, want, c.messages())
		case <-time.After(time.Millisecond):
		}
	}
}

// attempt tries for the file a number of times, as each minute does.
func (c *claiming) attempt(times int) {
	for range times {
		c.update(c.ctx, c.renew)
	}
}

// between changes the host between two attempts, so that none meets it half changed.
func (c *claiming) between(change func()) {
	c.Claim.mu.Lock()
	defer c.Claim.mu.Unlock()
	change()
}

// messages are the lines of the log without their values.
func (c *claiming) messages() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log)
}

// isHeld tells whether a coordinator runs, as a login shell of Flatcar finds out.
func isHeld(t *testing.T, root string) bool {
	t.Helper()
	file, err := os.Open(confOf(root))
	must(t, err)
	defer func() { _ = file.Close() }()
	free, err := tryLock(file, syscall.LOCK_EX)
	must(t, err)
	return !free
}

func says(state string) string {
	return "NAME=reboot-operator\nSTRATEGY=rebootpolicy\nSTATE=" + state + "\n"
}

func TestClaim_HoldsTheFileAndTellsHowFarItIs_Behaviour57(t *testing.T) {
	root := t.TempDir() // without even a /run
	c := claim(t, root)
	c.until(says("running"))
	for _, state := range []CoordinatorState{CoordinatorRebootPlanned, CoordinatorRebooting, CoordinatorRunning} {
		c.Say(c.ctx, state)
		content, err := os.ReadFile(confOf(root))
		must(t, err)
		if string(content) != says(string(state)) || !isHeld(t, root) {
			t.Errorf("the file says %q, held %t", content, isHeld(t, root))
		}
	}
	left, err := os.ReadDir(filepath.Dir(confOf(root)))
	must(t, err)
	if len(left) != 1 {
		t.Errorf("left beside the file: %v", left)
	}
	info, err := os.Stat(confOf(root))
	must(t, err)
	if info.Mode() != 0o644 {
		t.Errorf("mode %v: a login shell cannot read it", info.Mode())
	}

	c.stop()
	if got, err := readCoordinator(root); got != nil || err != nil || isHeld(t, root) {
		t.Errorf("after its end: %v, %v, held %t", got, err, isHeld(t, root))
	}
}

func TestClaim_IsNeverTakenFromALiveCoordinator_Behaviour57(t *testing.T) {
	root := t.TempDir()
	other := coordinate(t, root, locksmithConf)
	c := claim(t, root)
	for _, state := range []CoordinatorState{CoordinatorRunning, CoordinatorRebootPlanned} {
		c.attempt(2)
		c.Say(c.ctx, state)
	}
	content, err := os.ReadFile(confOf(root))
	must(t, err)
	if string(content) != locksmithConf {
		t.Errorf("the file says %q", content)
	}
	coordinators := Coordinators{HostRoot: root, Claim: c.Claim}
	got, err := coordinators.holder()
	if diff := cmp.Diff(&Coordinator{Name: "locksmithd"}, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}

	other.End() // What is left is free for the taking, and the state said meanwhile is not lost.
	c.until(says("reboot-planned"))
	if got, err := coordinators.holder(); got != nil || err != nil {
		t.Errorf("holding it, somebody else is found: %v, %v", got, err)
	}
	want := []string{"Cannot tell the host who reboots it", "Told the host who reboots it"}
	if diff := cmp.Diff(want, c.messages()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestClaim_IsLostWithTheFileAndTakenAgain(t *testing.T) {
	root := t.TempDir()
	c := claim(t, root)
	c.until(says("running"))
	var other *hosttest.Coordinator
	c.between(func() {
		must(t, os.Remove(confOf(root)))
		other = coordinate(t, root, locksmithConf)
	})
	c.Say(c.ctx, CoordinatorRebooting)
	content, err := os.ReadFile(confOf(root))
	must(t, err)
	if string(content) != locksmithConf {
		t.Errorf("the other's file says %q", content)
	}
	other.End()
	c.until(says("rebooting"))
	c.between(func() { must(t, os.RemoveAll(filepath.Join(root, "run"))) })
	c.until(says("rebooting"))
}

// A claim that has the file and cannot write into it is not in its own way, whatever another one has left there.
func TestClaim_WhatIsHeldHereIsNobodyElses(t *testing.T) {
	root := t.TempDir()
	coordinate(t, root, locksmithConf).End()
	draft := filepath.Join(filepath.Dir(confOf(root)), ".coordinator.conf.reboot-operator")
	must(t, os.Mkdir(draft, 0o750))
	c := claim(t, root)
	c.attempt(1)
	if got, err := (Coordinators{HostRoot: root, Claim: c.Claim}).holder(); got != nil || err != nil || !isHeld(t, root) {
		t.Errorf("found %v, %v, held %t", got, err, isHeld(t, root))
	}
	must(t, os.Remove(draft))
	c.until(says("running"))
}

func TestClaim_AFolderThatCannotBeWrittenIsToldOnce(t *testing.T) {
	root := t.TempDir()
	must(t, os.WriteFile(filepath.Join(root, "run"), nil, 0o600))
	c := claim(t, root)
	c.attempt(3)
	c.Say(c.ctx, CoordinatorRebootPlanned)
	c.between(func() { must(t, os.Remove(filepath.Join(root, "run"))) })
	c.until(says("reboot-planned"))
	c.stop() // The file is written before the log, and the log before the end.
	want := []string{"Cannot tell the host who reboots it", "Told the host who reboots it"}
	if diff := cmp.Diff(want, c.messages()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}
