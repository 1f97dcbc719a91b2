package service_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/cosupdateengine"
	"github.com/reboot-operator/reboot-operator/agent/engine/rpmostree"
	"github.com/reboot-operator/reboot-operator/agent/engine/service"
	"github.com/reboot-operator/reboot-operator/agent/engine/source"
	"github.com/reboot-operator/reboot-operator/agent/engine/updateengine"
	"github.com/reboot-operator/reboot-operator/hack/enginetest"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

// These tests cover what all engines on the bus have in common. The rest is tested in the package
// of each engine.

// kind is one engine.
type kind struct {
	name, title string
	make        func(service.Bus) source.Engine
	// busName, path and method identify the call that reads the status.
	busName, method string
	path            dbus.ObjectPath
	// start puts its idle service on the bus. It is nil if the service starts on demand.
	start func(*hosttest.Bus) (hostService, error)
}

// hostService is a service on the bus that the test controls.
type hostService struct {
	stop  func()
	start func() error
	// stage announces that version 4001.0.0 is staged, and reset forgets that without a signal.
	stage func() error
	reset string
	// fail makes the service answer with an error, and garble makes it answer with something that
	// is not a status.
	fail   func(name, text string)
	garble func(bool)
}

var kinds = []kind{
	{
		name: updateengine.Name, title: "update_engine",
		make:    func(bus service.Bus) source.Engine { return &updateengine.Engine{Bus: bus} },
		busName: "com.coreos.update1", path: "/com/coreos/update1", method: "com.coreos.update1.Manager.GetStatus",
		start: func(bus *hosttest.Bus) (hostService, error) {
			e, err := hosttest.StartUpdateEngine(bus)
			return hostService{
				stop: e.Stop, start: e.Start, stage: func() error { return e.Emit(hosttest.NeedReboot("4001.0.0")) },
				reset: "com.coreos.update1.Manager.ResetStatus", fail: e.FailStatus, garble: e.GarbleStatus,
			}, err
		},
	},
	{
		name: cosupdateengine.Name, title: "COS update_engine",
		make:    func(bus service.Bus) source.Engine { return &cosupdateengine.Engine{Bus: bus} },
		busName: "org.chromium.UpdateEngine", path: "/org/chromium/UpdateEngine", method: "org.chromium.UpdateEngineInterface.GetStatusAdvanced",
		start: func(bus *hosttest.Bus) (hostService, error) {
			e, err := hosttest.StartCOSUpdateEngine(bus, hosttest.COSCurrent)
			return hostService{
				stop: e.Stop, start: e.Start, stage: func() error { return e.Emit(hosttest.COSNeedReboot("4001.0.0")) },
				reset: "org.chromium.UpdateEngineInterface.ResetStatus", fail: e.FailStatus, garble: e.GarbleStatus,
			}, err
		},
	},
	{
		name: rpmostree.Name, title: "rpm-ostree",
		make:    func(bus service.Bus) source.Engine { return &rpmostree.Engine{Bus: bus} },
		busName: "org.projectatomic.rpmostree1", path: "/org/projectatomic/rpmostree1/Sysroot", method: "org.freedesktop.DBus.Properties.Get",
	},
}

func (k kind) unreachable() engine.Report {
	return engine.Unreachable(k.name, "The system bus cannot be reached.")
}

// absent is the report on a bus without the service. If the engine is optional, State is Absent
// until the service was seen.
func (k kind) absent(state engine.State) engine.Report {
	r := engine.Unreachable(k.name, k.title+" is not on the system bus.")
	r.State = state
	return r
}

func (k kind) upToDate() engine.Report {
	return engine.UpToDate(k.name, k.title+" has no update that waits for a reboot.")
}

func (k kind) needed() engine.Report {
	return engine.Staged(k.name, "4001.0.0", fmt.Sprintf("%s has installed version 4001.0.0; it runs after a reboot.", k.title))
}

// reads returns the name of the method that reads the status.
func (k kind) reads() string { return k.method[strings.LastIndexByte(k.method, '.')+1:] }

// rig is an engine on a bus.
type rig struct {
	*enginetest.Run

	kind    kind
	bus     *hosttest.Bus
	options service.Bus
}

// forEach runs a test for each kind of engine, which is not started yet. With needsStart it skips
// the kinds without a start.
func forEach(t *testing.T, starts bool, test func(t *testing.T, r *rig)) {
	t.Helper()
	for _, k := range kinds {
		if starts && k.start == nil {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			r := &rig{Run: enginetest.New(t), kind: k, bus: hosttest.StartFor(t)}
			r.options = r.Bus(r.bus.Address())
			test(t, r)
		})
	}
}

// run starts the engine.
func (r *rig) run() { r.Start(r.kind.make(r.options), nil) }

func (r *rig) startService() hostService {
	s, err := r.kind.start(r.bus)
	r.Must(err)
	return s
}

// call calls a method of the service, as its client on the host does.
func (r *rig) call(method string) {
	conn, err := r.bus.Connect()
	r.Must(err)
	defer func() { _ = conn.Close() }()
	r.Must(conn.Object(r.kind.busName, r.kind.path).Call(method, 0).Err)
}

// reached checks the values that the engine has sent to Reachable.
func (r *rig) reached(t *testing.T, want ...bool) {
	t.Helper()
	var got []bool
	for len(r.Reachable) > 0 {
		got = append(got, <-r.Reachable)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reachable (-want +got):\n%s", diff)
	}
}

func TestEngines_RunOnWithoutABus_Behaviour7(t *testing.T) {
	for _, optional := range []bool{false, true} {
		t.Run(fmt.Sprintf("optional %v", optional), func(t *testing.T) {
			forEach(t, false, func(t *testing.T, r *rig) {
				t.Helper()
				r.options.Optional = optional
				r.Must(r.bus.Halt())
				r.run()
				r.Expect(r.kind.unreachable())
				r.Must(r.bus.Restart())
				if optional { // Without a bus its presence is unknown.
					r.ExpectAfter(time.Minute, r.kind.absent(engine.Absent))
					r.reached(t)
					return
				}
				r.ExpectAfter(time.Minute, r.kind.absent(engine.Unknown))
				r.reached(t, false)
			})
		})
	}
}

func TestEngines_ThatWereThereInThisBootAreNotAbsentForTheNextProcess_Behaviour7(t *testing.T) {
	forEach(t, false, func(t *testing.T, r *rig) {
		t.Helper()
		r.options.Optional, r.options.Before = true, engine.Report{Engine: r.kind.name, State: engine.Unknown}
		r.run()
		r.Expect(r.kind.absent(engine.Unknown))
	})
}

func TestEngines_AreAbsentUntilTheyComeAndUnknownOnceTheyAreGone_Behaviours6And7(t *testing.T) {
	for optional, first := range map[bool]engine.State{false: engine.Unknown, true: engine.Absent} {
		t.Run(fmt.Sprintf("optional %v", optional), func(t *testing.T) {
			forEach(t, true, func(t *testing.T, r *rig) {
				t.Helper()
				r.options.Optional = optional
				r.run()
				r.Expect(r.kind.absent(first))
				if optional {
					r.reached(t)
				} else {
					r.reached(t, false)
				}
				s := r.startService()
				r.Expect(r.kind.upToDate())
				s.stop()
				r.Expect(r.kind.absent(engine.Unknown))
				r.Must(s.start())
				r.Expect(r.kind.upToDate())
				// Its broadcasts count again, under a new connection name.
				r.Must(s.stage())
				r.Expect(r.kind.needed())
				r.reached(t, true, false, true)
			})
		})
	}
}

func TestEngines_OutliveARestartOfTheBus_Behaviour6(t *testing.T) {
	forEach(t, true, func(t *testing.T, r *rig) {
		t.Helper()
		s := r.startService()
		r.run()
		r.Expect(r.kind.upToDate())
		r.Must(r.bus.Halt())
		r.Expect(r.kind.unreachable())
		r.Must(r.bus.Restart())
		r.Must(s.start())
		r.ExpectAfter(time.Minute, r.kind.upToDate())
		r.reached(t, true, false, true)
		r.Must(s.stage())
		r.Expect(r.kind.needed())
	})
}

func TestEngines_PollWithdrawsANeedThatWasReset_Behaviour3(t *testing.T) {
	forEach(t, true, func(t *testing.T, r *rig) {
		t.Helper()
		s := r.startService()
		r.run()
		r.Expect(r.kind.upToDate())
		for range 2 { // the first poll and the next
			r.Must(s.stage())
			r.Expect(r.kind.needed())
			r.call(s.reset)
			r.Until("the poll to be due", r.Clock.HasWaiters, 0)
			r.Clock.Step(5*time.Minute - time.Second) // see docs/hosts.md
			r.ExpectNoReport()
			r.Clock.Step(time.Second)
			r.Expect(r.kind.upToDate())
		}
	})
}

// needs starts an engine that requires a reboot and supports Again.
func (r *rig) needs() hostService {
	r.options.Again = make(source.Again)
	s := r.startService()
	r.run()
	r.Expect(r.kind.upToDate())
	r.Must(s.stage())
	r.Expect(r.kind.needed())
	return s
}

func TestEngines_LookOnceMoreWhenTheyAreAsked_Behaviour3(t *testing.T) {
	forEach(t, true, func(t *testing.T, r *rig) {
		t.Helper()
		s := r.needs()
		r.Must(r.options.Again.Look(t.Context()))
		r.ExpectNoReport()
		r.call(s.reset)
		r.Must(r.options.Again.Look(t.Context()))
		r.ExpectNow(r.kind.upToDate())
	})
}

// A need that was not withdrawn stays, but the engine has not confirmed it.
func TestEngines_ThatDoNotAnswerConfirmNothing_Behaviour3(t *testing.T) {
	forEach(t, true, func(t *testing.T, r *rig) {
		t.Helper()
		s := r.needs()
		s.fail("org.freedesktop.DBus.Error.AccessDenied", "no")
		if err := r.options.Again.Look(t.Context()); err == nil {
			t.Error("an engine that does not answer has confirmed its need")
		}
		r.ExpectNoReport()
		s.fail("", "")
		r.Must(r.options.Again.Look(t.Context()))
		s.stop()
		r.Must(r.options.Again.Look(t.Context())) // A service that has left cannot be queried.
	})
}

func TestEngines_ReportThatTheyMayNotAsk(t *testing.T) {
	forEach(t, true, func(t *testing.T, r *rig) {
		t.Helper()
		s := r.startService()
		s.fail("org.freedesktop.DBus.Error.AccessDenied", `Rejected send message, sender=":1.5" (uid=65532 pid=7)`)
		r.run()
		r.Expect(engine.Unreachable(r.kind.name, r.kind.title+" does not answer "+r.kind.reads()+": org.freedesktop.DBus.Error.AccessDenied."))
		s.fail("", "")
		r.Until("the next try to be due", r.Clock.HasWaiters, 0)
		r.Clock.Step(30 * time.Second)
		r.Expect(r.kind.upToDate())
	})
}

func TestEngines_CountAMalformedReply_Behaviour5(t *testing.T) {
	forEach(t, true, func(t *testing.T, r *rig) {
		t.Helper()
		s := r.startService()
		s.garble(true)
		r.run()
		r.Expect(engine.Unreachable(r.kind.name, r.kind.title+" answers "+r.kind.reads()+" with something that is not a status."))
		if n := r.Malformed.Load(); n != 1 {
			t.Errorf("%d malformed replies counted, want 1", n)
		}
		s.garble(false)
		r.ExpectAfter(30*time.Second, r.kind.upToDate())
	})
}

// Every test stops its engine at the end. This one does so while the service does not answer.
func TestEngines_StopWhileTheServiceHangs_Behaviour58(t *testing.T) {
	forEach(t, false, func(t *testing.T, r *rig) {
		t.Helper()
		conn, err := r.bus.Connect()
		r.Must(err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = conn.RequestName(r.kind.busName, dbus.NameFlagDoNotQueue)
		r.Must(err)
		calls := make(chan *dbus.Message, 10)
		conn.Eavesdrop(calls) // so that calls are not answered
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.kind.make(r.options).Run(ctx, func(engine.Report) {})
		}()
		for m := range calls {
			iface, _ := m.Headers[dbus.FieldInterface].Value().(string)
			member, _ := m.Headers[dbus.FieldMember].Value().(string)
			if path, _ := m.Headers[dbus.FieldPath].Value().(dbus.ObjectPath); path == r.kind.path && iface+"."+member == r.kind.method {
				break
			}
		}
		cancel()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("the engine does not stop")
		}
	})
}
