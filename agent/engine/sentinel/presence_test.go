package sentinel

import (
	"os"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/agent/engine"
)

func TestEngine_AHostWithoutRunIsUnknown_Behaviours7And25(t *testing.T) {
	h := newHarness(t)
	h.remove("run")
	h.run()
	h.Expect(noRun)
	h.mkdir("run")
	h.ExpectAfter(time.Minute, noFile)
	h.write("run/reboot-required", "")
	h.Expect(present)
	h.remove("run")
	// First the file goes, then its folder.
	h.Until("the end of /run to be noticed", func() bool { return len(h.Reports) > 0 && <-h.Reports == noRun }, time.Minute)
	if got := []bool{<-h.Reachable, <-h.Reachable, <-h.Reachable}; got[0] || !got[1] || got[2] {
		t.Errorf("reachable %v, want false, true and false", got)
	}
}

func TestEngine_ThatNobodyNamedIsAbsentUntilRunIsMountedAndUnknownOnceItIsGone_Behaviour7(t *testing.T) {
	for name, spoil := range map[string]func(*harness){
		"nothing":     func(h *harness) { h.remove("run") },
		"a file":      func(h *harness) { h.remove("run"); h.write("run", "") },
		"no host":     func(h *harness) { h.root = h.path("missing") },
		"a dead link": func(h *harness) { h.remove("run"); h.Must(os.Symlink("missing", h.path("run"))) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.optional = true
			spoil(h)
			h.run()
			if r := h.next(); r.State != engine.Absent {
				t.Errorf("reported %+v, want it absent", r)
			}
			h.remove("")
			h.mkdir("run")
			// In between it may be noticed that there is nothing at all.
			h.Until("/run to be found", func() bool { return len(h.Reports) > 0 && <-h.Reports == noFile }, time.Minute)
			h.remove("run")
			h.ExpectAfter(time.Minute, noRun)
			if got := []bool{<-h.Reachable, <-h.Reachable}; !got[0] || got[1] {
				t.Errorf("reachable %v, want true and then false", got)
			}
		})
	}
}

// The mounts of a pod change with a new process of the agent only.
func TestEngine_ThatWasThereInThisBootIsNotAbsentForTheNextProcess_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.optional, h.before = true, present
	h.remove("run")
	h.run()
	h.Expect(noRun)
}
