package rpmostree

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/enginetest"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

// running is the deployment that the hosts of these tests run.
var (
	running   = hosttest.Deployment{Version: "40.1", Booted: true}
	runningID = "40.1 (" + short("40.1") + ".0)"
)

// The reports of these tests.
var (
	upToDate = engine.Report{
		Engine: "rpm-ostree", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate,
		Message: "rpm-ostree has no deployment that waits for a reboot.",
	}
	staged402 = engine.Report{
		Engine: "rpm-ostree", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: "40.2",
		Running: runningID, Message: "rpm-ostree has staged version 40.2 (" + short("40.2") + "); it runs after a reboot.",
	}
	locked402 = engine.Report{
		Engine: "rpm-ostree", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate,
		Message: "rpm-ostree has staged version 40.2 (" + short("40.2") + "), which is locked: a reboot leaves it out until it is finalized.",
	}
	absent        = cannotAsk("rpm-ostree is not on the system bus.")
	unreachable   = cannotAsk("The system bus cannot be reached.")
	unreadable    = cannotAsk("rpm-ostree does not report its deployments: its answer cannot be read.")
	notFromOstree = cannotAsk("rpm-ostree does not report a booted deployment.")
)

func cannotAsk(why string) engine.Report {
	return engine.Report{
		Engine: "rpm-ostree", State: engine.Unknown, Reason: v1alpha1.ReasonEngineUnreachable, Message: why,
	}
}

// short returns the part of the checksum of a version that people see.
func short(version string) string { return hosttest.Commit(version)[:12] }

// harness is an Engine that runs on a real bus.
type harness struct {
	*enginetest.Run

	t      *testing.T
	bus    *hosttest.Bus
	engine *Engine
	// probe is the number of the last probe that the Engine logged.
	probe atomic.Int64
	// left counts how often the Engine logged that the daemon had left, and vain how often it got
	// no reply.
	left, vain atomic.Int64
}

// newHarness starts a bus without rpm-ostree.
func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{Run: enginetest.New(t), t: t, bus: hosttest.StartFor(t)}
	h.engine = &Engine{Bus: h.Bus(h.bus.Address())}
	return h
}

// install adds an rpm-ostree that is not running yet.
func (h *harness) install(deployments ...hosttest.Deployment) *hosttest.RPMOSTree {
	h.t.Helper()
	ostree, err := hosttest.InstallRPMOSTree(h.bus, deployments...)
	h.Must(err)
	h.t.Cleanup(func() {
		if calls := ostree.Calls(); len(calls) > 0 {
			h.t.Errorf("the watcher made rpm-ostree do something: %v", calls)
		}
	})
	return ostree
}

// start runs the Engine.
func (h *harness) start() {
	h.t.Helper()
	h.Start(h.engine, h.log)
}

// log counts probes and other events in the log of the Engine.
func (h *harness) log(args string) {
	switch {
	case strings.Contains(args, "40 values instead of 3"):
		h.probe.Add(1)
	case strings.Contains(args, "Got no answer"):
		h.vain.Add(1)
	case strings.Contains(args, `"running"=false`):
		h.left.Add(1)
	}
}

// settle returns once everything that the daemon has sent so far was handled. The bus and the
// Engine keep the order of signals, so a probe, which is malformed, counted and logged, arrives
// last.
func (h *harness) settle(ostree *hosttest.RPMOSTree) {
	h.t.Helper()
	probe := h.probe.Load()
	h.Must(ostree.EmitPropertiesChanged(slices.Repeat([]any{"probe"}, 40)...))
	h.Until("the probe to be received", func() bool { return h.probe.Load() > probe }, 0)
	h.Malformed.Add(-1)
}

// expectNothing checks that the daemon's signals so far did not lead to a report.
func (h *harness) expectNothing(ostree *hosttest.RPMOSTree) {
	h.t.Helper()
	h.settle(ostree)
	h.ExpectNoReport()
}

// exit makes the idle daemon exit, and returns when the Engine has noticed it.
func (h *harness) exit(ostree *hosttest.RPMOSTree) {
	h.t.Helper()
	remaining := h.left.Load()
	h.Until("the daemon to be idle", ostree.Exit, 0)
	h.Until("the engine to detect it", func() bool { return h.left.Load() > remaining }, 0)
}

// otherSender returns a connection that is not the daemon's.
func (h *harness) otherSender() *dbus.Conn {
	h.t.Helper()
	conn, err := h.bus.Connect()
	h.Must(err)
	h.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// notYet advances the time and checks that no timer fires: a timer that fires does not wait any
// more.
func (h *harness) notYet(step time.Duration) {
	h.t.Helper()
	h.Clock.Step(step)
	if !h.Clock.HasWaiters() {
		h.t.Fatalf("something was due within %s", step)
	}
}

// pollIsDue advances the time exactly to the next poll.
func (h *harness) pollIsDue() {
	h.t.Helper()
	h.Until("the poll to be due", h.Clock.HasWaiters, 0)
	h.Clock.Step(15 * time.Minute)
}
