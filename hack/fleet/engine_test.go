package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/cosupdateengine"
	"github.com/reboot-operator/reboot-operator/agent/engine/enginetest"
	"github.com/reboot-operator/reboot-operator/agent/engine/rpmostree"
	"github.com/reboot-operator/reboot-operator/agent/engine/sentinel"
	"github.com/reboot-operator/reboot-operator/agent/engine/updateengine"
	"github.com/reboot-operator/reboot-operator/agent/host"
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
	run, bus := enginetest.New(t), host.SystemBus(h.Bus.Address())
	run.Start(map[string]engine.Engine{
		updateengine.Name:    &updateengine.Engine{Connect: bus, Clock: run.Clock},
		cosupdateengine.Name: &cosupdateengine.Engine{Connect: bus, Clock: run.Clock},
		rpmostree.Name:       &rpmostree.Engine{Connect: bus, Clock: run.Clock},
		sentinel.Name:        &sentinel.Engine{HostRoot: h.Root, Clock: run.Clock},
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

func TestHost_BootsTheVersionThatWasStaged(t *testing.T) {
	cases := map[string]string{
		cosupdateengine.Name: "BUILD_ID=" + cosAfter,
		rpmostree.Name:       "OSTREE_VERSION='" + ostreeAfter + "'",
	}
	for name, line := range cases {
		t.Run(name, func(t *testing.T) {
			h := switchedOn(t, engineNamed(t, name))
			release := func() string {
				text, err := os.ReadFile(filepath.Join(h.Root, "etc", "os-release"))
				must(t, err)
				return string(text)
			}
			if strings.Contains(release(), line) {
				t.Errorf("%s runs before the reboot", line)
			}
			must(t, h.updates.stage())
			must(t, h.boot())
			if !strings.Contains(release(), line) {
				t.Errorf("no %s after the reboot in\n%s", line, release())
			}
		})
	}
}

func TestHost_EmptiesRunAtABoot(t *testing.T) {
	h := switchedOn(t, engineNamed(t, updateengine.Name))
	must(t, os.MkdirAll(filepath.Join(h.run(), "update-engine"), 0o700))
	must(t, os.WriteFile(filepath.Join(h.run(), "reboot-required"), nil, 0o600))
	must(t, h.boot())
	left, err := os.ReadDir(h.run())
	if err != nil || len(left) > 0 {
		t.Errorf("left in /run: %v %v", left, err)
	}
}

func TestHost_LetsRPMOSTreeLeaveAsIdle(t *testing.T) {
	h := switchedOn(t, engineNamed(t, rpmostree.Name))
	daemon := h.updates.(*ostreeUpdates).daemon
	run, _ := receive(t, h) // The agent's call starts it.
	h.idle()
	must(t, h.updates.stage()) // The upgrade starts it again.
	if report := <-run.Reports; report.State != engine.Needed {
		t.Errorf("with an update staged: %+v", report)
	}
	h.idle()
	conn, err := h.Bus.Connect()
	must(t, err)
	defer conn.Close()
	var runs bool
	must(t, conn.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, "org.projectatomic.rpmostree1").Store(&runs))
	if daemon.Starts() != 2 || runs {
		t.Errorf("started %d times, want 2; runs still: %t", daemon.Starts(), runs)
	}
	run.ExpectNoReport()
}

func TestParseEngines(t *testing.T) {
	cases := map[string]struct {
		list  string
		names []string
		want  string
	}{
		"one":     {"sentinel", []string{"sentinel"}, ""},
		"several": {"rpm-ostree,update-engine", []string{"rpm-ostree", "update-engine"}, ""},
		"unknown": {"rpm-ostree,yum", nil, `there is no engine "yum" to simulate: there are update-engine, cos-update-engine, rpm-ostree, sentinel`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseEngines(tc.list)
			if err != nil || tc.want != "" {
				if err == nil || err.Error() != tc.want {
					t.Errorf("error %v, want %s", err, tc.want)
				}
				return
			}
			var names []string
			for _, e := range got {
				names = append(names, e.Name)
			}
			if diff := cmp.Diff(tc.names, names); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
