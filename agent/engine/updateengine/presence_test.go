package updateengine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
)

func TestEngine_RunsOnWithoutUpdateEngine_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.run()
	h.Expect(absent)
	h.expectNothing()
	h.startHost().SetStatus(hosttest.NeedReboot("4001.0.0"))
	// It is found when it takes its name, idle, or when it has the need, whichever comes first.
	h.Until("the need", func() bool {
		select {
		case r := <-h.Reports:
			return r == needed4001
		default:
			return false
		}
	}, 5*time.Minute)
}

func TestEngine_RunsOnWithoutABus_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.Must(h.bus.Halt())
	h.run()
	h.Expect(unreachableBus)
	h.Must(h.bus.Restart())
	h.ExpectAfter(time.Minute, absent)
}

func TestEngine_ThatNobodyNamedIsAbsentUntilItComesAndUnknownOnceItIsGone_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.engine.Optional = true
	h.run()
	never := absent
	never.State = engine.Absent
	h.Expect(never)
	if len(h.Reachable) > 0 {
		t.Error("an engine that was never there is reported to be up or down")
	}
	e := h.startHost()
	h.Expect(upToDate)
	e.Stop()
	h.Expect(absent)
	h.Must(e.Start())
	h.Expect(upToDate)
	h.Must(h.bus.Halt())
	h.Expect(unreachableBus)
	h.Must(h.bus.Restart())
	h.ExpectAfter(time.Minute, absent)
	if got := []bool{<-h.Reachable, <-h.Reachable, <-h.Reachable, <-h.Reachable}; !got[0] || got[1] || !got[2] || got[3] {
		t.Errorf("reachable %v, want each change", got)
	}
}

func TestEngine_ThatWasThereInThisBootIsNotAbsentForTheNextProcess_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.engine.Optional, h.engine.Before = true, engine.Report{Engine: Name, State: engine.Unknown}
	h.run()
	h.Expect(absent)
}

func TestEngine_ReportsWhetherTheEngineIsReachable(t *testing.T) {
	h := newHarness(t)
	e := h.startHost()
	h.Must(e.Emit(hosttest.NeedReboot("4001.0.0")))
	h.run()
	h.Expect(needed4001)
	e.Stop() // No report: the need stays.
	h.Must(h.bus.Halt())
	h.Must(h.bus.Restart())
	h.Must(e.Start())
	var got []bool
	h.Until("the engine to be back", func() bool {
		select {
		case reachable := <-h.Reachable:
			got = append(got, reachable)
		default:
		}
		return len(got) == 3
	}, time.Minute)
	if diff := cmp.Diff([]bool{true, false, true}, got); diff != "" {
		t.Errorf("reachable (-want +got):\n%s", diff)
	}
}

// Where nobody can look nobody knows whether it is there.
func TestEngine_ThatNobodyNamedIsUnknownWithoutABusAndAbsentOnceThereIsOne_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.engine.Optional = true
	h.Must(h.bus.Halt())
	h.run()
	h.Expect(unreachableBus)
	h.Must(h.bus.Restart())
	never := absent
	never.State = engine.Absent
	h.ExpectAfter(time.Minute, never)
	if len(h.Reachable) > 0 {
		t.Error("an engine that was never there is reported to be up or down")
	}
}
