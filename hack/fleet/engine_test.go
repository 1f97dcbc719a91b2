package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/cosupdateengine"
	"github.com/reboot-operator/reboot-operator/agent/engine/enginetest"
	"github.com/reboot-operator/reboot-operator/agent/engine/rpmostree"
	"github.com/reboot-operator/reboot-operator/agent/engine/sentinel"
	"github.com/reboot-operator/reboot-operator/agent/engine/source"
	"github.com/reboot-operator/reboot-operator/agent/engine/updateengine"
)

func engineNamed(t *testing.T, name string) Engine {
	t.Helper()
	named, err := ParseEngines(name)
	if err != nil {
		t.Fatal(err)
	}
	return named[0]
}

// switchedOn is a machine after its first boot, without a cluster around it.
func switchedOn(t *testing.T, e Engine) *Host {
	t.Helper()
	h := &Host{Name: "node-1", Root: t.TempDir(), Engine: e}
	must(t, os.Mkdir(filepath.Join(h.Root, "etc"), 0o700))
	must(t, h.mount(e.release))
	must(t, h.startBus())
	t.Cleanup(func() { must(t, h.Bus.Stop()) })
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// receive runs the agent's engine on a machine, as a new process of the agent does, and returns the run and what it reports
// first.
func receive(t *testing.T, h *Host) (*enginetest.Run, engine.Report) {
	t.Helper()
	run := enginetest.New(t)
	bus := run.Bus(h.Bus.Address())
	run.Start(map[string]source.Engine{
		updateengine.Name:    &updateengine.Engine{Bus: bus},
		cosupdateengine.Name: &cosupdateengine.Engine{Bus: bus},
		rpmostree.Name:       &rpmostree.Engine{Bus: bus},
		sentinel.Name:        &sentinel.Engine{Options: run.Options(), HostRoot: h.Root},
	}[h.Engine.Name], nil)
	return run, <-run.Reports
}

// found are which of the engine's words a report has.
func found(e Engine, report engine.Report) []string {
	var matched []string
	for _, part := range e.Reports {
		if strings.Contains(report.Message, part) {
			matched = append(matched, part)
		}
	}
	return matched
}

// What a machine does is what the agent's own engine understands, from the first boot to the second.
func TestEngine_IsReceivedByTheAgent(t *testing.T) {
	for _, name := range EngineNames() {
		t.Run(name, func(t *testing.T) {
			h := switchedOn(t, engineNamed(t, name))
			run, report := receive(t, h)
			if report.State != engine.NotNeeded {
				t.Fatalf("before anything is staged: %+v", report)
			}
			must(t, h.updates.stage())
			for len(found(h.Engine, report)) < len(h.Engine.Reports) { // The list of packages may come a moment later.
				report = <-run.Reports
			}
			if report.State != engine.Needed {
				t.Errorf("with an update staged: %+v", report)
			}
			must(t, h.boot())
			if _, report = receive(t, h); report.State != engine.NotNeeded {
				t.Errorf("after the reboot: %+v", report)
			}
		})
	}
}
