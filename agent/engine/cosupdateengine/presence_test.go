package cosupdateengine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
)

func TestEngine_RunsOnWithoutUpdateEngine_Behaviours7And25(t *testing.T) {
	h := newHarness(t)
	h.run()
	h.Expect(absent)
	h.startHost(hosttest.COSCurrent)
	h.Expect(upToDate)
}

func TestEngine_ThatNobodyNamedIsAbsentUntilItComesAndUnknownOnceItIsGone_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.engine.Optional = true
	h.run()
	never := absent
	never.State = engine.Absent
	h.Expect(never)
	e := h.startHost(hosttest.COSCurrent)
	h.Expect(upToDate)
	e.Stop()
	h.Expect(absent)
	if got := []bool{<-h.Reachable, <-h.Reachable}; !got[0] || got[1] {
		t.Errorf("reachable %v, want true and then false", got)
	}
}

func TestEngine_ThatLeavesWhileItIsAskedIsAbsent_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.startHost(hosttest.COSCurrent).CrashWhenAsked()
	h.run()
	h.Expect(absent)
}

func TestEngine_ThatWasThereInThisBootIsNotAbsentForTheNextProcess_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.engine.Optional, h.engine.Before = true, engine.Report{Engine: Name, State: engine.Unknown}
	h.run()
	h.Expect(absent)
}

func TestEngine_ReportsWhetherTheEngineIsReachable(t *testing.T) {
	h := newHarness(t)
	e := h.startHost(hosttest.COSCurrent)
	h.run()
	h.Expect(upToDate)
	e.Stop()
	h.Expect(absent)
	h.Must(e.Start())
	h.Expect(upToDate)
	got := []bool{<-h.Reachable, <-h.Reachable, <-h.Reachable}
	if diff := cmp.Diff([]bool{true, false, true}, got); diff != "" {
		t.Errorf("reachable (-want +got):\n%s", diff)
	}
}
