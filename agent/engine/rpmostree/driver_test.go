package rpmostree

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/hack/enginetest"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

// The configuration of the Driver. The limit is far above the time that passes while a test waits
// for something else.
const (
	period = time.Hour
	limit  = 1000 * time.Hour
)

// drive is a Driver that runs on a real bus.
type drive struct {
	*enginetest.Run

	t      *testing.T
	bus    *hosttest.Bus
	ostree *hosttest.RPMOSTree
	driver *Driver
	rounds chan Round

	mu sync.Mutex
	// lines are the log lines of the Driver at level 0.
	lines []string
}

// newDrive returns a host with a Driver that has not been started. The host runs the given
// deployments, by default version 40.1.
func newDrive(t *testing.T, deployments ...hosttest.Deployment) *drive {
	t.Helper()
	d := &drive{Run: enginetest.New(t), t: t, bus: hosttest.StartFor(t), rounds: make(chan Round, 100)}
	if len(deployments) == 0 {
		deployments = []hosttest.Deployment{running}
	}
	var err error
	d.ostree, err = hosttest.InstallRPMOSTree(d.bus, deployments...)
	d.Must(err)
	d.driver = &Driver{
		Connect: host.SystemBus(d.bus.Address()), Clock: d.Clock, Period: period, Limit: limit,
		Ended: func(r, _ Round) { d.rounds <- r }, Malformed: func() { d.Malformed.Add(1) },
	}
	return d
}

// start runs the Driver and returns a function that stops it in time. The end of the test stops it,
// too.
func (d *drive) start() (stop func()) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(logr.NewContext(d.t.Context(), funcr.New(d.log, funcr.Options{LogTimestamp: false})))
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.driver.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		d.t.Helper()
		cancel()
		select {
		case <-done:
		case <-time.After(time.Minute):
			d.t.Error("the driver does not stop (behaviour 58)")
		}
	})
	d.t.Cleanup(stop)
	return stop
}

func (d *drive) log(_, args string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, args)
}

// logged counts the lines with a text.
func (d *drive) logged(text string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, line := range d.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// next advances the time until a round has ended, and checks its result. Errors are compared by
// their text.
func (d *drive) next(want Round, wantErr string) {
	d.t.Helper()
	d.Until("a round: "+string(want.Outcome), func() bool { return len(d.rounds) > 0 }, period/20)
	d.is(<-d.rounds, want, wantErr)
}

// ended waits for the end of a round without advancing the time.
func (d *drive) ended(want Round, wantErr string) {
	d.t.Helper()
	d.Until("the end of the round: "+string(want.Outcome), func() bool { return len(d.rounds) > 0 }, 0)
	d.is(<-d.rounds, want, wantErr)
}

func (d *drive) is(got, want Round, wantErr string) {
	d.t.Helper()
	gotErr := ""
	if got.Err != nil {
		gotErr = got.Err.Error()
	}
	got.Err = nil
	if diff := cmp.Diff(want, got); diff != "" {
		d.t.Fatalf("round (-want +got):\n%s\nerror: %s", diff, gotErr)
	}
	if diff := cmp.Diff(wantErr, gotErr); diff != "" {
		d.t.Fatalf("error (-want +got):\n%s", diff)
	}
}

// calls checks the calls of rpm-ostree.
func (d *drive) calls(want ...string) {
	d.t.Helper()
	if diff := cmp.Diff(want, d.ostree.Calls()); diff != "" {
		d.t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// other is another client of rpm-ostree, such as an administrator with its command.
type other struct {
	d    *drive
	conn *dbus.Conn
}

func (d *drive) other() other {
	d.t.Helper()
	conn, err := d.bus.Connect()
	d.Must(err)
	d.t.Cleanup(func() { _ = conn.Close() })
	return other{d, conn}
}

// begin begins a transaction and returns its address.
func (o other) begin(method string, options map[string]dbus.Variant, before ...any) string {
	o.d.t.Helper()
	var address string
	system := dbus.ObjectPath("/org/projectatomic/rpmostree1/fedora_coreos")
	call := o.conn.Object(busName, system).Call(osInterface+"."+method, 0, options)
	o.d.Must(call.Store(append(before, &address)...))
	return address
}

// beginCheck begins `rpm-ostree upgrade --check`.
func (o other) beginCheck() {
	o.d.t.Helper()
	var enabled bool
	o.begin("AutomaticUpdateTrigger", map[string]dbus.Variant{"mode": dbus.MakeVariant("check")}, &enabled)
}

// startUpgrade begins `rpm-ostree upgrade` and starts it.
func (o other) startUpgrade() {
	o.d.t.Helper()
	socket, err := host.SocketOf(o.begin("Upgrade", map[string]dbus.Variant{}), "")
	o.d.Must(err)
	peer, err := dialPeer(o.d.t.Context(), socket, make(chan *dbus.Signal, 16))
	o.d.Must(err)
	o.d.t.Cleanup(func() { _ = peer.Close() })
	o.d.Must(transaction{peer: peer}.call(o.d.t.Context(), "Start").Err)
}

func TestDriver_UpgradesAndStages(t *testing.T) {
	d := newDrive(t)
	d.ostree.OnUpgrade(func(tx *hosttest.Transaction) error {
		if diff := cmp.Diff([]string{"reboot-operator"}, d.ostree.Clients()); diff != "" {
			return fmt.Errorf("clients (-want +got):\n%s", diff)
		}
		tx.Message("Pulling")
		tx.Percent("Staging", 50)
		return d.ostree.Stage("40.2")
	})
	d.start()
	d.next(Round{Outcome: OutcomeStaged, Version: "40.2"}, "")
	d.calls("RegisterClient", "Upgrade", "Start", "Reload")
	d.Until("the daemon to be idle", d.ostree.Exit, 0)
	if n := d.logged("Staged an upgrade of the host"); n != 1 {
		t.Errorf("reported %d times that an upgrade was staged", n)
	}
}

func TestDriver_TheWatcherSeesWhatWasStaged_Behaviour11(t *testing.T) {
	d := newDrive(t)
	d.Start(&Engine{Bus: enginetest.New(t).Bus(d.bus.Address())}, nil)
	d.Expect(upToDate)
	d.ostree.OnUpgrade(func(*hosttest.Transaction) error { return d.ostree.Stage("40.2") })
	d.start()
	d.next(Round{Outcome: OutcomeStaged, Version: "40.2"}, "")
	d.Expect(staged402)
	// The next round finds nothing newer, and the staged deployment stays.
	d.ostree.OnUpgrade(nil)
	d.next(Round{Outcome: OutcomeStaged, Version: "40.2"}, "")
	d.ExpectNoReport()
}

func TestDriver_FindsNoUpgrade(t *testing.T) {
	d := newDrive(t)
	d.start()
	for range 3 {
		d.next(Round{Outcome: OutcomeUpToDate}, "")
	}
	if n := d.logged("Found no upgrade of the host"); n != 1 {
		t.Errorf("reported %d times, want the first time only", n)
	}
}

func TestDriver_LogsWhatFailedAndTriesAgainInTheNextPeriod(t *testing.T) {
	d := newDrive(t)
	d.ostree.OnUpgrade(func(*hosttest.Transaction) error { return errors.New("no space left on device") })
	d.start()
	d.next(Round{Outcome: OutcomeFailed}, "rpm-ostree failed: no space left on device")
	d.ostree.OnUpgrade(func(*hosttest.Transaction) error { return d.ostree.Stage("40.2") })
	d.next(Round{Outcome: OutcomeStaged, Version: "40.2"}, "")
	d.Until("the daemon to be idle", d.ostree.Exit, 0)
}

// dbus-broker, the bus of Fedora and RHEL, reports a service that fails to start as a name without
// an owner.
func TestDriver_ADaemonThatDbusBrokerCannotStartIsAFailure(t *testing.T) {
	d := newDrive(t)
	d.ostree.FailReads("org.freedesktop.DBus.Error.NameHasNoOwner", "Could not activate remote peer 'org.projectatomic.rpmostree1': startup job failed")
	d.start()
	d.next(Round{Outcome: OutcomeFailed},
		"reading Sysroot of rpm-ostree: Could not activate remote peer 'org.projectatomic.rpmostree1': startup job failed")
}

func TestDriver_WaitsAPeriodAndUpToATenthOfIt(t *testing.T) {
	d := newDrive(t)
	d.start()
	d.Until("the first round to be due", d.Clock.HasWaiters, 0)
	d.Clock.Step(period / 10)
	d.ended(Round{Outcome: OutcomeUpToDate}, "")
	for range 3 {
		d.Until("the next round to be due", d.Clock.HasWaiters, 0)
		d.Clock.Step(period - time.Second)
		if len(d.rounds) > 0 || !d.Clock.HasWaiters() {
			t.Fatal("a round began before the period was over")
		}
		d.Clock.Step(period/10 + time.Second)
		d.ended(Round{Outcome: OutcomeUpToDate}, "")
	}
}

func TestDriver_CancelsATransactionAtItsDeadline_Defect28(t *testing.T) {
	d := newDrive(t)
	begun := make(chan struct{})
	d.ostree.OnUpgrade(func(tx *hosttest.Transaction) error {
		close(begun)
		<-tx.Cancelled()
		return errors.New("Operation was cancelled")
	})
	d.start()
	d.until(begun)
	d.Clock.Step(limit - time.Hour)
	if !d.Clock.HasWaiters() {
		t.Fatal("the deadline came early")
	}
	d.Clock.Step(time.Hour)
	d.ended(Round{Outcome: OutcomeFailed}, "the transaction took too long: more than 1000h0m0s")
	d.calls("RegisterClient", "Upgrade", "Start", "Cancel")
	d.ostree.OnUpgrade(func(*hosttest.Transaction) error { return d.ostree.Stage("40.2") })
	d.next(Round{Outcome: OutcomeStaged, Version: "40.2"}, "")
}

// until advances the time in small steps until a round has begun.
func (d *drive) until(begun <-chan struct{}) {
	d.t.Helper()
	d.Until("the transaction to begin", func() bool {
		select {
		case <-begun:
			return true
		default:
			return false
		}
	}, period/1000)
}

func TestDriver_LeavesATransactionThatCannotBeCancelledAndWaitsForIt(t *testing.T) {
	d := newDrive(t)
	begun, release := make(chan struct{}), make(chan struct{})
	d.ostree.OnUpgrade(func(*hosttest.Transaction) error {
		close(begun)
		<-release
		return nil
	})
	d.start()
	d.until(begun)
	d.Clock.Step(limit)
	d.ended(Round{Outcome: OutcomeFailed}, "the transaction took too long: more than 1000h0m0s\n"+
		"waiting for the transaction to end after it was cancelled: context deadline exceeded")
	d.next(Round{Outcome: OutcomeBusy}, "")
	close(release)
	d.ostree.OnUpgrade(nil)
	d.Until("the transaction to be over", d.ostree.Exit, 0)
	d.next(Round{Outcome: OutcomeUpToDate}, "")
}

func TestDriver_NeverRunsWhileAnotherTransactionIsActive(t *testing.T) {
	d := newDrive(t)
	o := d.other()
	o.beginCheck()
	d.start()
	d.next(Round{Outcome: OutcomeBusy}, "")
	d.next(Round{Outcome: OutcomeBusy}, "")
	d.calls("AutomaticUpdateTrigger")
	d.Must(o.conn.Close())
	d.Until("the other transaction to be over", d.ostree.Exit, 0)
	d.next(Round{Outcome: OutcomeUpToDate}, "")
}

func TestDriver_GivesWayToATransactionThatIsFaster(t *testing.T) {
	d := newDrive(t)
	d.ostree.BeforeUpgrade(d.other().beginCheck)
	d.start()
	d.next(Round{Outcome: OutcomeBusy}, "")
	d.calls("RegisterClient", "AutomaticUpdateTrigger", "Upgrade")
}

func TestDriver_DoesNotTakeOverSomebodyElsesUpgrade(t *testing.T) {
	d := newDrive(t)
	release := make(chan struct{})
	defer close(release)
	d.ostree.OnUpgrade(func(*hosttest.Transaction) error {
		<-release
		return nil
	})
	d.ostree.BeforeUpgrade(d.other().startUpgrade)
	d.start()
	d.next(Round{Outcome: OutcomeBusy}, "")
	d.calls("RegisterClient", "Upgrade", "Start", "Upgrade", "Start")
}

func TestDriver_LeavesUpgradesToTheHostsOwnTimer(t *testing.T) {
	const policy = "a policy of later"
	d := newDrive(t)
	d.Must(d.ostree.SetAutomaticUpdatePolicy(policy))
	d.start()
	d.next(Round{Outcome: OutcomeLeftToHost, Policy: policy}, "")
	d.next(Round{Outcome: OutcomeLeftToHost, Policy: policy}, "")
	d.calls()
	if n := d.logged(fmt.Sprintf(`"policy"=%q`, policy)); n != 1 {
		t.Errorf("reported %d times, want the first time only", n)
	}
	d.Must(d.ostree.SetAutomaticUpdatePolicy("check"))
	d.next(Round{Outcome: OutcomeUpToDate}, "")
}

func TestDriver_LeavesALockedDeploymentToWhoeverLockedIt(t *testing.T) {
	d := newDrive(t, hosttest.Deployment{Version: "40.2", Staged: true, Locked: true}, running)
	d.start()
	d.next(Round{Outcome: OutcomeLocked}, "")
	d.calls()
}

func TestDriver_BeginsNothingWhileItIsHeld(t *testing.T) {
	d := newDrive(t)
	held := make(chan bool, 2)
	held <- true
	held <- false
	d.driver.Hold = func() bool { return <-held }
	d.start()
	d.next(Round{Outcome: OutcomeHeld}, "")
	if n := d.ostree.Starts(); n != 0 {
		t.Errorf("the daemon was started %d times", n)
	}
	d.next(Round{Outcome: OutcomeUpToDate}, "")
}

func TestDriver_LogsProgressNowAndThen(t *testing.T) {
	d := newDrive(t)
	step, begun := make(chan struct{}), make(chan struct{})
	d.ostree.OnUpgrade(func(tx *hosttest.Transaction) error {
		close(begun)
		for i := range uint32(3) {
			<-step
			tx.Download(i, 3)
			for range 50 {
				tx.Percent("Staging", 10*i)
			}
			tx.Emit("Message") // a probe, which is malformed and counted
		}
		return nil
	})
	d.start()
	d.until(begun)
	for i := range int64(3) {
		d.Clock.Step(10 * time.Second)
		step <- struct{}{}
		d.Until("the probe", func() bool { return d.Malformed.Load() == i+1 }, 0)
	}
	d.ended(Round{Outcome: OutcomeUpToDate}, "")
	for _, text := range []string{
		`"step"="Downloading 0 of 3 objects" "percent"=0`, `"step"="Downloading 1 of 3 objects" "percent"=33`,
		`"step"="Downloading 2 of 3 objects" "percent"=66`,
	} {
		if n := d.logged(text); n != 1 {
			t.Errorf("%s was notified %d times", text, n)
		}
	}
	if n := d.logged("Upgrading the host"); n != 3 {
		t.Errorf("%d lines of progress", n)
	}
}

func TestDriver_CountsAndIgnoresMalformedSignals_Behaviour5(t *testing.T) {
	d := newDrive(t)
	d.ostree.OnUpgrade(func(tx *hosttest.Transaction) error {
		tx.Emit("Finished")
		tx.Emit("Finished", "yes", "")
		tx.Emit("Finished", true, "", "more")
		tx.Emit("PercentProgress", "a", int32(1))
		tx.Emit("Message", []string{"a"})
		tx.Emit("DownloadProgress", uint32(1))
		tx.Emit("SomethingOfLater", uint32(1))
		return d.ostree.Stage("40.2")
	})
	d.start()
	d.next(Round{Outcome: OutcomeStaged, Version: "40.2"}, "")
	if n := d.Malformed.Load(); n != 6 {
		t.Errorf("%d malformed signals counted, want 6", n)
	}
}

func TestDriver_OutlivesACrashOfTheDaemonInATransaction(t *testing.T) {
	d := newDrive(t)
	d.ostree.OnUpgrade(func(*hosttest.Transaction) error {
		d.ostree.Crash()
		return nil
	})
	d.start()
	d.next(Round{Outcome: OutcomeFailed}, "rpm-ostree closed the connection before the end")
	d.ostree.OnUpgrade(nil)
	d.next(Round{Outcome: OutcomeUpToDate}, "")
}

func TestDriver_OutlivesARestartOfTheBus_Behaviour6(t *testing.T) {
	d := newDrive(t)
	d.Must(d.bus.Halt())
	d.start()
	d.Until("a round", func() bool { return len(d.rounds) > 0 }, period/20)
	if round := <-d.rounds; round.Outcome != OutcomeFailed {
		t.Errorf("round without a bus: %+v", round)
	}
	d.Must(d.bus.Restart())
	d.next(Round{Outcome: OutcomeUpToDate}, "")
}

func TestDriver_IsQuietOnAHostWithoutRPMOSTree_Behaviour7(t *testing.T) {
	d := &drive{Run: enginetest.New(t), t: t, bus: hosttest.StartFor(t), rounds: make(chan Round, 100)}
	d.driver = &Driver{
		Connect: host.SystemBus(d.bus.Address()), Clock: d.Clock, Period: period, Limit: limit, Ended: func(r, _ Round) { d.rounds <- r },
	}
	d.start()
	for range 3 {
		d.next(Round{Outcome: OutcomeAbsent}, "")
	}
	if n := d.logged("Left the host alone"); n != 1 || d.logged("failed") != 0 {
		t.Errorf("reported %d times, want the first time only, and no failure", n)
	}
}

func TestDriver_CancelsItsTransactionWhenItIsStopped_Behaviour58(t *testing.T) {
	d := newDrive(t)
	begun, cancelled := make(chan struct{}), make(chan struct{})
	d.ostree.OnUpgrade(func(tx *hosttest.Transaction) error {
		close(begun)
		<-tx.Cancelled()
		close(cancelled)
		return errors.New("Operation was cancelled")
	})
	stop := d.start()
	d.until(begun)
	stop()
	<-cancelled
	if len(d.rounds) > 0 {
		t.Errorf("reported of a round that was stopped: %+v", <-d.rounds)
	}
	d.Until("the daemon to be idle", d.ostree.Exit, 0)
}

func TestDriver_TalksToRPMOSTreeAlone_Defect28(t *testing.T) {
	d := newDrive(t)
	monitor := d.other().conn
	calls := make(chan *dbus.Message, 1000)
	d.Must(monitor.BusObject().Call("org.freedesktop.DBus.Monitoring.BecomeMonitor", 0, []string{"type='method_call'"}, uint32(0)).Err)
	monitor.Eavesdrop(calls)
	d.start()
	d.next(Round{Outcome: OutcomeUpToDate}, "")
	got := map[string]bool{}
	for len(calls) > 0 || !got["org.projectatomic.rpmostree1.Sysroot.Reload"] {
		m := <-calls
		if m.Type != dbus.TypeMethodCall {
			continue
		}
		destination, _ := m.Headers[dbus.FieldDestination].Value().(string)
		iface, _ := m.Headers[dbus.FieldInterface].Value().(string)
		member, _ := m.Headers[dbus.FieldMember].Value().(string)
		if destination != busDaemon && destination != busName {
			t.Errorf("somebody called %s.%s of %s", iface, member, destination)
		}
		got[iface+"."+member] = true
	}
	if !got["org.projectatomic.rpmostree1.OS.Upgrade"] {
		t.Errorf("saw no upgrade: %v", got)
	}
}
