package reboot

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
)

func TestReports_WaitForEachEngine(t *testing.T) {
	wake := NewWake("n1")
	r := NewReports(wake, "a", "b")
	a, b := engine.Report{Engine: "a", State: engine.NotNeeded}, engine.Report{Engine: "b", State: engine.Needed, Message: "B."}
	for _, report := range []engine.Report{b, a} {
		if got := r.all(); got != nil {
			t.Errorf("before %s: %v", report.Engine, got)
		}
		r.Put(report)
	}
	if diff := cmp.Diff([]engine.Report{a, b}, r.all()); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	if len(wake.triggers) != 1 {
		t.Error("nobody was woken")
	}
}
