package reboot

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/agent/volume"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// fakeDrainer reports its statuses and then ends with err. If err is empty, it waits for the end of
// ctx.
type fakeDrainer struct {
	statuses []drain.Status
	err      chan error
	// refused are the pods that may not be evicted from the drained node. leftErr is the error of
	// finding that out.
	refused []drain.Pod
	leftErr error
}

func (f *fakeDrainer) EvictLeft(context.Context, string, drain.PodRules) ([]drain.Pod, error) {
	return f.refused, f.leftErr
}

func (f *fakeDrainer) Drain(ctx context.Context, _ string, _ drain.PodRules, report func(drain.Status)) error {
	for _, status := range f.statuses {
		report(status)
	}
	select {
	case err := <-f.err:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// inBubble runs a test with started drains and their drainer.
func inBubble(t *testing.T, test func(t *testing.T, d *drains, f *fakeDrainer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeDrainer{err: make(chan error, 1)}
		d := newDrains("n1", func(string) Drainer { return f }, clock.RealClock{}, newWake("n1"))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.Start(ctx) }()
		test(t, d, f)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Start: %v", err)
		}
		if d.running() {
			t.Error("a drain outlives Start")
		}
	})
}

func (d *drains) mustRun(t *testing.T, seq int64) {
	t.Helper()
	settings := step.Settings{Drain: v1alpha1.Drain{OnTimeout: v1alpha1.DrainTimeoutReboot}}
	if err := d.run(t.Context(), protocol.Grant{Seq: seq}, settings); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func (d *drains) mustBe(t *testing.T, seq int64, want step.Drain) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, d.of(seq).Drain); diff != "" {
		t.Errorf("drain %d (-want +got):\n%s", seq, diff)
	}
}

func TestDrains_EndOfADrain(t *testing.T) {
	undrainable := &drain.UndrainableError{Pods: []drain.Pod{{Namespace: "a", Name: "b", Message: "it is bare"}}}
	cases := map[string]struct {
		err  error
		want step.Drain
	}{
		"done":        {nil, step.Drain{State: step.DrainDone}},
		"undrainable": {undrainable, step.Drain{State: step.DrainUndrainable, Message: "a/b (it is bare)."}},
		"failed": {errors.New("no right"), step.Drain{
			State: step.DrainFailed, Message: "The last error was: no right.", Failures: 1,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, d *drains, f *fakeDrainer) {
				t.Helper()
				d.mustBe(t, 1, step.Drain{})
				d.mustRun(t, 1)
				d.mustBe(t, 1, step.Drain{State: step.DrainRunning, Message: notRead})
				if d.of(1).settings.Drain.OnTimeout != v1alpha1.DrainTimeoutReboot {
					t.Error("the settings it runs by are not known")
				}
				f.err <- tc.err
				synctest.Wait()
				switch tc.want.State {
				case step.DrainFailed:
					tc.want.FailedAt = d.clock.Now()
				case step.DrainDone:
					tc.want.DoneAt = d.clock.Now()
				case step.DrainNone, step.DrainRunning, step.DrainUndrainable, step.DrainStopped:
				}
				d.mustBe(t, 1, tc.want)
				d.mustBe(t, 2, step.Drain{})
				if len(d.wake.triggers) != 1 {
					t.Error("nobody was woken")
				}
			})
		})
	}
}

func TestDrains_FailuresAddUp(t *testing.T) {
	inBubble(t, func(t *testing.T, d *drains, f *fakeDrainer) {
		t.Helper()
		for range 2 {
			d.mustRun(t, 1)
			f.err <- errors.New("no right")
			synctest.Wait()
		}
		if got := d.of(1).Failures; got != 2 {
			t.Errorf("%d failures", got)
		}
		d.mustRun(t, 2)
		d.mustBe(t, 2, step.Drain{State: step.DrainRunning, Message: notRead})
	})
}

// A pod that left before an error still counts as having left.
func TestDrains_RememberThatAPodLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, d *drains, f *fakeDrainer) {
		t.Helper()
		kept := []volume.Use{{Name: "disk"}}
		f.statuses = []drain.Status{{Remaining: 1}, {Evicted: 1, Volumes: kept}}
		d.mustRun(t, 1)
		f.err <- errors.New("no right")
		synctest.Wait()
		f.statuses = []drain.Status{{Volumes: kept}}
		d.mustRun(t, 1)
		f.err <- nil
		d.mustBe(t, 1, step.Drain{State: step.DrainDone, DoneAt: d.clock.Now(), Evicted: true, Volumes: kept})
		f.statuses = nil
		d.mustRun(t, 2)
		d.mustBe(t, 2, step.Drain{State: step.DrainRunning, Message: notRead})
	})
}

// Pods that were deleted before an error still count. Pods that are being deleted do not count
// twice.
func TestDrains_CountPodsThatAreForced(t *testing.T) {
	inBubble(t, func(t *testing.T, d *drains, f *fakeDrainer) {
		t.Helper()
		f.statuses = []drain.Status{{Remaining: 5}, {Remaining: 4, Deleted: 3, Deleting: 2}}
		d.mustRun(t, 1)
		d.mustBe(t, 1, step.Drain{State: step.DrainRunning, Listed: true, Message: "4 pods are left on the node.", Deleted: 3, Remaining: 2, Total: 4})
		f.err <- errors.New("no right")
		d.mustBe(t, 1, step.Drain{State: step.DrainFailed, Message: "The last error was: no right.", Failures: 1, FailedAt: d.clock.Now(), Deleted: 3})
		f.statuses = []drain.Status{{Remaining: 1}, {Deleted: 1}}
		d.mustRun(t, 1)
		f.err <- nil
		d.mustBe(t, 1, step.Drain{State: step.DrainDone, DoneAt: d.clock.Now(), Deleted: 4})
	})
}

func TestDrains_Stop(t *testing.T) {
	inBubble(t, func(t *testing.T, d *drains, f *fakeDrainer) {
		t.Helper()
		if err := d.stop(t.Context()); err != nil {
			t.Errorf("stopping nothing: %v", err)
		}
		f.statuses = []drain.Status{{Remaining: 5, Evicted: 1, Deleted: 2, Blocked: []drain.Pod{{Namespace: "a", Name: "b", Reason: "R", Message: "why"}}}}
		d.mustRun(t, 1)
		if err := d.stop(t.Context()); err != nil {
			t.Error(err)
		}
		d.mustBe(t, 1, step.Drain{State: step.DrainStopped, Listed: true, Message: "5 pods are left on the node; in the way: a/b (why).", Evicted: true, Deleted: 2, Remaining: 5, Gone: 1, Total: 6})
		if d.of(1).blocked != nil {
			t.Error("a drain that was stopped waits for somebody")
		}
		d.mustRun(t, 1)
		d.mustBe(t, 1, step.Drain{State: step.DrainRunning, Listed: true, Waits: "a/b (R)", Message: "5 pods are left on the node; in the way: a/b (why).", Evicted: true, Deleted: 4, Remaining: 5, Gone: 1, Total: 6})
		f.statuses = nil
		d.mustRun(t, 2)
		d.mustBe(t, 1, step.Drain{})
		d.mustBe(t, 2, step.Drain{State: step.DrainRunning, Message: notRead})
	})
}

// A drain knows the remaining pods only once it has listed them itself.
func TestDrains_ReportWhyThePodsCannotBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, d *drains, f *fakeDrainer) {
		t.Helper()
		f.statuses = []drain.Status{{Remaining: 3}}
		d.mustRun(t, 1)
		f.statuses = []drain.Status{{Unread: "too busy"}}
		d.mustRun(t, 1)
		const why = "The node's pods could not be read: too busy."
		d.mustBe(t, 1, step.Drain{State: step.DrainRunning, Unread: why, Message: why})
		f.statuses = append(f.statuses, drain.Status{Remaining: 2})
		d.mustRun(t, 1)
		d.mustBe(t, 1, step.Drain{State: step.DrainRunning, Listed: true, Message: "2 pods are left on the node.", Remaining: 2, Total: 2})
	})
}

// TestDrains_WakeIfThePodsCannotBeRead shows one wake-up when the pods become unreadable and one
// when they become readable, so that the condition is up to date.
func TestDrains_WakeIfThePodsCannotBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, d *drains, _ *fakeDrainer) {
		t.Helper()
		d.mustRun(t, 1)
		for i, tc := range []struct {
			status drain.Status
			wakes  bool
		}{
			{drain.Status{Unread: "too busy"}, true},
			{drain.Status{Unread: "too busy still"}, false},
			{drain.Status{Remaining: 2}, true},
			{drain.Status{Remaining: 1}, false},
		} {
			d.progress(tc.status)
			woken := len(d.wake.triggers) == 1
			if woken {
				<-d.wake.triggers
			}
			if woken != tc.wakes {
				t.Errorf("status %d: woken %v, want %v", i, woken, tc.wakes)
			}
		}
	})
}

func TestDrains_WakeForOtherPodsInTheWay(t *testing.T) {
	inBubble(t, func(t *testing.T, d *drains, f *fakeDrainer) {
		t.Helper()
		blocked := []drain.Pod{{Namespace: "a", Name: "b", UID: "u", Reason: "R", Message: "why"}}
		f.statuses = []drain.Status{{Remaining: 3}}
		d.mustRun(t, 1)
		d.mustBe(t, 1, step.Drain{State: step.DrainRunning, Listed: true, Message: "3 pods are left on the node.", Remaining: 3, Total: 3})
		if len(d.wake.triggers) != 0 {
			t.Error("woken for pods that are leaving")
		}
		f.statuses = []drain.Status{{Remaining: 3, Blocked: blocked}}
		d.mustRun(t, 2)
		d.mustBe(t, 2, step.Drain{State: step.DrainRunning, Listed: true, Waits: "a/b (R)", Message: "3 pods are left on the node; in the way: a/b (why).", Remaining: 3, Total: 3})
		if diff := cmp.Diff(blocked, d.of(2).blocked); diff != "" || len(d.wake.triggers) != 1 {
			t.Errorf("blocked, %d triggers (-want +got):\n%s", len(d.wake.triggers), diff)
		}
	})
}

// A finished drain reports the pods that came back. The next drain does not know them.
func TestDrains_ReportWhichPodsStay(t *testing.T) {
	inBubble(t, func(t *testing.T, d *drains, f *fakeDrainer) {
		t.Helper()
		f.statuses = []drain.Status{{Remaining: 1}, {Evicted: 1, Back: []drain.Pod{{Namespace: "a", Name: "b", Message: "why"}}}}
		d.mustRun(t, 1)
		f.err <- nil
		d.mustBe(t, 1, step.Drain{State: step.DrainDone, DoneAt: d.clock.Now(), Evicted: true, Staying: "staying: a/b (why)"})
		f.statuses = nil
		d.mustRun(t, 1)
		f.err <- nil
		d.mustBe(t, 1, step.Drain{State: step.DrainDone, DoneAt: d.clock.Now(), Evicted: true})
	})
}

func TestDrains_OrderEndsWithItsContext(t *testing.T) {
	d := newDrains("n1", nil, clock.RealClock{}, newWake("n1"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.run(ctx, protocol.Grant{Seq: 1}, step.Settings{}); !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v", err)
	}
}

// A drain is held up by budgets if nothing else holds it up.
func TestDrains_HeldUpByBudgets(t *testing.T) {
	protected := drain.Pod{Name: "db-0", Reason: v1alpha1.EventEvictionBlocked, Budgets: "db"}
	stuck := drain.Pod{Name: "old", Reason: drain.ReasonStuckTerminating}
	denied := drain.Pod{Name: "web", Reason: v1alpha1.EventEvictionBlocked, Message: "denied the request"}
	waits := drain.Pod{Name: "batch", Reason: string(v1alpha1.DrainWaitCompleted)}
	inBubble(t, func(t *testing.T, d *drains, f *fakeDrainer) {
		t.Helper()
		f.statuses = []drain.Status{{Remaining: 1}}
		d.mustRun(t, 1)
		for name, tc := range map[string]struct {
			blocked []drain.Pod
			want    bool
		}{
			"nothing": {nil, false}, "a budget and a pod that terminates": {[]drain.Pod{protected, stuck}, true},
			"also a webhook": {[]drain.Pod{protected, denied}, false}, "also a rule": {[]drain.Pod{protected, waits}, false},
		} {
			d.progress(drain.Status{Remaining: 2, Blocked: tc.blocked})
			if got := d.of(1).Budgeted; got != tc.want {
				t.Errorf("%s: %v, want %v", name, got, tc.want)
			}
		}
	})
}

// The text about the pods that hold up a drain stays the same for the same pods, even if the API
// server's message changes.
func TestDrains_WaitsFor(t *testing.T) {
	inBubble(t, func(t *testing.T, d *drains, f *fakeDrainer) {
		t.Helper()
		pod := drain.Pod{Namespace: "a", Name: "db-0", Reason: v1alpha1.EventEvictionBlocked, Budgets: "db", Message: "needs 3 healthy pods and has 3"}
		again := pod
		again.Message = "needs 3 healthy pods and has 2"
		f.statuses = []drain.Status{{Remaining: 1, Blocked: []drain.Pod{pod}}}
		d.mustRun(t, 1)
		first := d.of(1).Waits
		d.progress(drain.Status{Remaining: 1, Blocked: []drain.Pod{again}})
		if want := "a/db-0 (PodDisruptionBudget db)"; first != want || d.of(1).Waits != want {
			t.Errorf("waits for %q, then %q; want %q", first, d.of(1).Waits, want)
		}
		long := drain.Pod{Namespace: strings.Repeat("n", 63), Name: strings.Repeat("p", 253), Reason: drain.ReasonStuckTerminating}
		d.progress(drain.Status{Remaining: 4, Blocked: []drain.Pod{pod, long, long, long}})
		if got := d.of(1).Waits; len(got) > maxHeld || !strings.HasPrefix(got, "a/db-0 (PodDisruptionBudget db), nnn") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
		d.progress(drain.Status{Remaining: 1})
		if got := d.of(1).Waits; got != "" {
			t.Errorf("waits for %q once no pod is in the way", got)
		}
	})
}

// TestDrains_EvictLeft shows how pods that came back to a drained node affect its reboot.
func TestDrains_EvictLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		refused []drain.Pod
		err     error
		want    string
	}{
		"all may go":                        {},
		"one may not":                       {refused: []drain.Pod{{Namespace: "a", Name: "b", Message: "why"}}, want: "Pods that came back may not go: a/b (why)."},
		"it is unknown whether they may go": {err: errAPI, want: "The pods that came back could not be evicted: " + errAPI.Error() + "."},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, d *drains, f *fakeDrainer) {
				t.Helper()
				d.mustRun(t, 1)
				f.err <- nil
				d.mustBe(t, 1, step.Drain{State: step.DrainDone, DoneAt: d.clock.Now()})
				f.refused, f.leftErr = tc.refused, tc.err
				d.evictLeft(t.Context(), protocol.Grant{Seq: 1}, step.Settings{})
				d.mustBe(t, 1, step.Drain{State: step.DrainDone, DoneAt: d.clock.Now(), LeftAt: d.clock.Now(), Refused: tc.want})
			})
		})
	}
}
