package rpmostree

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

func TestEngine_RunsOnWithoutRPMOSTree_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.start()
	h.Expect(absent)
	ostree := h.install(hosttest.Deployment{Version: "40.2", Staged: true}, running) // installed without a signal
	h.pollIsDue()
	h.Expect(staged402)
	if n := ostree.Starts(); n != 1 {
		t.Errorf("started %d times, want once", n)
	}
}

func TestEngine_WithoutAFlagIsAbsentUntilTheBusCanStartIt_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.engine.Optional = true
	h.start()
	never := absent
	never.State = engine.Absent
	h.Expect(never)
	if len(h.Reachable) > 0 {
		t.Error("an engine that was never there is reported to be up or down")
	}
	ostree := h.install(running)
	h.pollIsDue()
	h.Expect(upToDate)
	h.exit(ostree) // An idle daemon is not Absent.
	h.ExpectNoReport()
	h.Must(h.bus.Halt())
	h.Expect(unreachable)
}

func TestEngine_WithoutAFlagIsNotAbsentIfItFailsToStart_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.engine.Optional = true
	h.Must(h.install(running).Activates(false))
	h.start()
	h.Expect(cannotAsk("rpm-ostree does not report its deployments: org.freedesktop.DBus.Error.Spawn.ChildExited."))
}

// dbus-broker, the bus of Fedora and RHEL, reports a service that fails to start as a name without
// an owner.
func TestEngine_ThatDbusBrokerCannotStartIsNotAbsent_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.engine.Optional = true
	ostree := h.install(hosttest.Deployment{Version: "40.2", Staged: true}, running)
	ostree.FailReads("org.freedesktop.DBus.Error.NameHasNoOwner", "Could not activate remote peer 'org.projectatomic.rpmostree1': startup job failed")
	h.start()
	h.Expect(cannotAsk("rpm-ostree does not report its deployments: the system bus cannot start it."))
	ostree.FailReads("", "")
	h.Until("the next try to be due", h.Clock.HasWaiters, 0)
	h.Clock.Step(30 * time.Second)
	h.Expect(staged402)
}

func TestEngine_KeepsItsNeedAndReportsWhetherTheDaemonIsReachable_Behaviour6(t *testing.T) {
	h := newHarness(t)
	ostree := h.install(hosttest.Deployment{Version: "40.2", Staged: true}, running)
	h.start()
	h.Expect(staged402)
	h.exit(ostree) // It can still be queried.
	h.Must(h.bus.Restart())
	var got []bool
	h.Until("the daemon to be back", func() bool {
		got = append(got, h.allReachable()...)
		return len(got) == 3
	}, time.Minute)
	if diff := cmp.Diff([]bool{true, false, true}, got); diff != "" {
		t.Errorf("reachable (-want +got):\n%s", diff)
	}
	h.expectNothing(ostree) // The need has not changed.
}
