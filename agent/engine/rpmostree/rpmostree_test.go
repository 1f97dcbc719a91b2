package rpmostree

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/service"
	"github.com/reboot-operator/reboot-operator/agent/engine/source"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

func TestEngine_DetectsAnUpdateBeingStagedAndCleanedUp_Behaviour11(t *testing.T) {
	h := newHarness(t)
	ostree := h.install(running)
	h.start()
	h.Expect(upToDate)
	h.Must(ostree.Stage("40.2"))
	h.Expect(staged402)
	h.Must(ostree.SetDeployments(running))
	h.Expect(upToDate)
	h.expectNothing(ostree)
}

func TestEngine_LooksOnceMoreWhenItIsAsked_Behaviour3(t *testing.T) {
	h := newHarness(t)
	h.engine.Again = make(source.Again)
	ostree := h.install(hosttest.Deployment{Version: "40.2", Staged: true}, running)
	h.start()
	h.Expect(staged402)
	h.exit(ostree) // An idle daemon exits, and then changes on disk do not cause a signal.
	h.Must(ostree.SetDeploymentsQuietly(running))
	h.Must(h.engine.Again.Look(t.Context()))
	h.ExpectNow(upToDate)
}

func TestEngine_ThatDoesNotAnswerConfirmsNothing_Behaviour3(t *testing.T) {
	for name, breaks := range map[string]func(*hosttest.RPMOSTree) error{
		"it answers with an error": func(o *hosttest.RPMOSTree) error {
			o.FailReads("org.freedesktop.DBus.Error.AccessDenied", "no")
			return nil
		},
		"it answers with something else": func(o *hosttest.RPMOSTree) error {
			o.GarbleDeployments("nonsense")
			return nil
		},
		"the bus cannot start it": func(o *hosttest.RPMOSTree) error {
			o.Crash()
			return o.Activates(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.engine.Again = make(source.Again)
			ostree := h.install(hosttest.Deployment{Version: "40.2", Staged: true}, running)
			h.start()
			h.Expect(staged402)
			h.Must(breaks(ostree))
			if err := h.engine.Again.Look(t.Context()); err == nil {
				t.Error("it has confirmed its need")
			}
			h.ExpectNoReport()
		})
	}
}

func TestEngine_DetectsDeploymentsFromTheOSObjectToo(t *testing.T) {
	h := newHarness(t)
	ostree := h.install(running)
	h.start()
	h.Expect(upToDate)
	h.Must(ostree.SetDeploymentsQuietly(hosttest.Deployment{Version: "40.2", Staged: true}, running))
	h.Expect(staged402)
}

func TestEngine_IdleExitIsNotAReportAndTheDaemonIsNotStarted(t *testing.T) {
	h := newHarness(t)
	ostree := h.install(hosttest.Deployment{Version: "40.2", Staged: true}, running)
	h.start()
	h.Expect(staged402)
	if reads, starts := ostree.Reads(), ostree.Starts(); reads != 1 || starts != 1 {
		t.Errorf("%d reads and %d starts to begin with, want 1 and 1", reads, starts)
	}
	h.exit(ostree)
	h.Until("the poll to be due", h.Clock.HasWaiters, 0)
	h.notYet(15*time.Minute - time.Second)
	// Another client starts the daemon. If the engine had started it, this would not be the second
	// start.
	h.Must(ostree.Start())
	h.Until("the engine to read again", func() bool { return ostree.Reads() == 2 }, 0)
	h.expectNothing(ostree)
	if reads, starts := ostree.Reads(), ostree.Starts(); reads != 2 || starts != 2 {
		t.Errorf("%d reads and %d starts, want 2 and 2", reads, starts)
	}
	if diff := cmp.Diff([]bool{true}, h.allReachable()); diff != "" {
		t.Errorf("reachable (-want +got):\n%s", diff)
	}
}

func TestEngine_PollWakesTheDaemonOnceIn15Minutes(t *testing.T) {
	h := newHarness(t)
	ostree := h.install(running)
	h.start()
	h.Expect(upToDate)
	for polls := range 4 {
		h.exit(ostree)
		if n := ostree.Starts(); n != polls+1 {
			t.Fatalf("%d starts after %d polls", n, polls)
		}
		h.pollIsDue()
		h.Until("the poll", func() bool { return ostree.Reads() == polls+2 }, 0)
	}
	h.expectNothing(ostree)
	if reads, starts := ostree.Reads(), ostree.Starts(); reads != 5 || starts != 5 {
		t.Errorf("%d reads and %d starts for 4 polls, want 5 and 5", reads, starts)
	}
}

func TestEngine_FindsChangesMadeWhileTheDaemonWasAway(t *testing.T) {
	for name, tc := range map[string]struct {
		wake func(h *harness, ostree *hosttest.RPMOSTree)
	}{
		"when another client wakes it": {func(h *harness, ostree *hosttest.RPMOSTree) { h.Must(ostree.Start()) }},
		"at the poll":                  {func(h *harness, _ *hosttest.RPMOSTree) { h.pollIsDue() }},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			ostree := h.install(running)
			h.start()
			h.Expect(upToDate)
			h.exit(ostree)
			h.Must(ostree.Stage("40.2")) // without a signal
			h.ExpectNoReport()
			tc.wake(h, ostree)
			h.Expect(staged402)
		})
	}
}

func TestEngine_OutlivesACrashOfTheDaemonInTheMiddleOfASignal(t *testing.T) {
	h := newHarness(t)
	ostree := h.install(running)
	h.start()
	h.Expect(upToDate)
	ostree.FailReads("org.freedesktop.DBus.Error.NameHasNoOwner", "gone between its signal and the call")
	h.Must(ostree.Stage("40.2"))
	h.settle(ostree)
	h.ExpectNoReport()
	ostree.FailReads("", "")
	h.Until("the next try to be due", h.Clock.HasWaiters, 0)
	h.Clock.Step(30 * time.Second)
	h.Expect(staged402)
}

func TestEngine_CountsAndIgnoresMalformedSignals_Behaviour5(t *testing.T) {
	one := map[string]dbus.Variant{"Deployments": dbus.MakeVariant(1)}
	bodies := [][]any{
		{},
		{sysrootInterface},
		{sysrootInterface, one},
		{sysrootInterface, one, []string{}, "more"},
		{sysrootInterface, []string{}, one},
		{dbus.MakeVariant(sysrootInterface), one, []string{}},
		{int32(1), one, []string{}},
		{sysrootInterface, map[string]string{"Deployments": "a"}, []string{}},
		{sysrootInterface, one, "Deployments"},
		{sysrootInterface, one, []int32{1}},
		{sysrootInterface, one, strings.Repeat("9", 32<<10)},
	}
	h := newHarness(t)
	ostree := h.install(running)
	h.start()
	h.Expect(upToDate)
	for _, body := range bodies {
		h.Must(ostree.EmitPropertiesChanged(body...))
	}
	h.expectNothing(ostree)
	if got, want := h.Malformed.Load(), int64(len(bodies)); got != want {
		t.Errorf("%d malformed bodies counted, want %d", got, want)
	}
	if n := ostree.Reads(); n != 1 {
		t.Errorf("read %d times, want once", n)
	}
	h.Must(ostree.Stage("40.2"))
	h.Expect(staged402)
}

func TestEngine_CountsMalformedReplies_Behaviour5(t *testing.T) {
	for name, value := range map[string]any{
		"no variant":     "text",
		"booted as text": dbus.MakeVariant([]map[string]dbus.Variant{{"booted": dbus.MakeVariant("true")}}),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			ostree := h.install(running)
			ostree.GarbleDeployments(value)
			h.start()
			h.Expect(unreadable)
			if n := h.Malformed.Load(); n != 1 {
				t.Errorf("%d malformed replies counted, want 1", n)
			}
			ostree.GarbleDeployments(nil)
			h.ExpectAfter(30*time.Second, upToDate)
		})
	}
}

func TestEngine_AMalformedVersionIsCountedAndTheNeedIsNamedByItsCommit(t *testing.T) {
	h := newHarness(t)
	h.install(hosttest.Deployment{Version: "40.2 (\n)", Staged: true, Checksum: strings.Repeat("ab", 32)}, running)
	h.start()
	want := staged402
	want.Version, want.Message = "abababababab", "rpm-ostree has staged commit abababababab; it runs after a reboot."
	h.Expect(want)
	if n := h.Malformed.Load(); n != 1 {
		t.Errorf("%d malformed values counted, want 1", n)
	}
}

func TestEngine_IgnoresOtherSenders(t *testing.T) {
	h := newHarness(t)
	ostree := h.install(running)
	h.start()
	h.Expect(upToDate)
	sender := h.otherSender()
	body := []any{sysrootInterface, map[string]dbus.Variant{"Deployments": dbus.MakeVariant(1)}, []string{}}
	h.Must(sender.Emit(sysrootPath, propertiesChanged, body...))
	h.Must(sender.BusObject().Call("org.freedesktop.DBus.GetId", 0).Err)
	h.expectNothing(ostree)
	if n := ostree.Reads(); n != 1 {
		t.Errorf("read %d times, want once", n)
	}
	// A signal that is addressed to the engine passes every match rule.
	w := watch{engine: &Engine{}, Link: service.Link{Owner: ":1.1"}}
	for name, signal := range map[string]*dbus.Signal{
		"a change":              {Sender: ":1.9", Path: sysrootPath, Name: propertiesChanged, Body: body, Sequence: 1},
		"a change of the owner": {Sender: ":1.9", Path: "/org/freedesktop/DBus", Name: ownerChanged, Body: []any{busName, "", ":1.9"}, Sequence: 1},
		"another signal":        {Sender: ":1.1", Path: sysrootPath, Name: "a.b.C", Body: body, Sequence: 1},
	} {
		if w.receive(t.Context(), signal) || w.Owner != ":1.1" {
			t.Errorf("%s was taken for something", name)
		}
	}
}

// A connection that breaks during a write is detected before its reader notices the end.
func TestEngine_ABrokenConnectionDoesNotCountAsSilenceOfTheDaemon_Behaviour6(t *testing.T) {
	w := watch{engine: &Engine{}}
	if _, err := w.unanswered(t.Context(), syscall.EPIPE, false); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("the error is %v, want the one of the connection", err)
	}
}

func TestEngine_OutlivesARestartOfTheBus_Behaviour6(t *testing.T) {
	h := newHarness(t)
	ostree := h.install(running)
	h.start()
	h.Expect(upToDate)
	h.Must(h.bus.Halt())
	h.Expect(unreachable)
	h.Must(h.bus.Restart())
	h.ExpectAfter(time.Minute, upToDate)
	h.Must(ostree.Stage("40.2"))
	h.Expect(staged402)
}

func TestEngine_StartsADaemonThatFailsToStartLessAndLessOften(t *testing.T) {
	h := newHarness(t)
	ostree := h.install(running)
	h.Must(ostree.Activates(false))
	h.start()
	h.Expect(cannotAsk("rpm-ostree does not report its deployments: org.freedesktop.DBus.Error.Spawn.ChildExited."))
	pause := 30 * time.Second
	for tries := range int64(7) {
		h.Until("the next try to be due", h.Clock.HasWaiters, 0)
		h.notYet(pause - time.Second)
		h.Clock.Step(time.Second)
		h.Until("the next try", func() bool { return h.vain.Load() == tries+2 }, 0)
		pause = min(2*pause, 15*time.Minute)
	}
	h.Until("the next try to be due", h.Clock.HasWaiters, 0)
	h.ExpectNoReport()
	h.Must(ostree.Activates(true))
	h.Clock.Step(15 * time.Minute)
	h.Expect(upToDate)
}

func TestEngine_RestartedAgentKeepsItsNeedUntilTheDaemonDeniesIt(t *testing.T) {
	h := newHarness(t)
	h.Must(h.bus.Halt())
	h.engine.Before = engine.Report{Engine: "rpm-ostree", State: engine.Needed, Version: "40.2"}
	h.start()
	h.Expect(engine.Report{
		Engine: "rpm-ostree", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: "40.2",
		Message: "rpm-ostree boots 40.2 next; it runs after a reboot.",
	})
	h.Must(h.bus.Restart())
	h.install(running)
	h.ExpectAfter(time.Minute, upToDate)
}

// allReachable returns all values that Reachable has received so far.
func (h *harness) allReachable() []bool {
	var all []bool
	for len(h.Reachable) > 0 {
		all = append(all, <-h.Reachable)
	}
	return all
}

func TestEngine_DetectsAnUpdateWhoseSignalOvertakesAnOlderAnswer(t *testing.T) {
	h := newHarness(t)
	ostree := h.install(running)
	ostree.BeforeAnswer(func() { h.Must(ostree.Stage("40.2")) })
	h.start()
	h.Expect(upToDate)
	h.Expect(staged402)
}

func TestEngine_ReadsOnceForABurstOfOccasions(t *testing.T) {
	w := watch{engine: &Engine{}, Link: service.Link{Owner: ":1.1", Found: 10}, read: 12}
	body := []any{osInterface, map[string]dbus.Variant{"DefaultDeployment": dbus.MakeVariant(1)}, []string{}}
	var again []bool
	for _, sequence := range []dbus.Sequence{8, 9, 11, 13} {
		signal := &dbus.Signal{Sender: ":1.1", Path: sysrootPath, Name: propertiesChanged, Body: body, Sequence: sequence}
		again = append(again, w.receive(t.Context(), signal))
	}
	if !slices.Equal(again, []bool{false, false, true, true}) {
		t.Errorf("occasions before, during and after the read: %v", again)
	}
}
