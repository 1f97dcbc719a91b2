package hosttest

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/godbus/dbus/v5"
)

// Names of logind on the bus.
const (
	logindName      = "org.freedesktop.login1"
	logindPath      = dbus.ObjectPath("/org/freedesktop/login1")
	logindInterface = "org.freedesktop.login1.Manager"
)

// Systemd is a generation of logind. They differ in how they treat block inhibitors.
type Systemd int

const (
	// SystemdCurrent is 257 and later. Block inhibitors of any user bind root, too. Flag 0x1 makes
	// weak inhibitors of other users count, and 0x10 skips all inhibitors.
	SystemdCurrent Systemd = iota
	// SystemdWithoutPolkit is the same on a host without polkit. There 0x10 skips only weak
	// inhibitors, even for root.
	SystemdWithoutPolkit
	// SystemdBefore257 ignores block inhibitors for root in Reboot. Flag 0x1 makes those of other
	// users count, and 0x10 is an invalid argument.
	SystemdBefore257
	// SystemdWithoutFlags does not have RebootWithFlags. Its Reboot ignores block inhibitors for
	// root.
	SystemdWithoutFlags
)

// Flags of RebootWithFlags that the fake knows.
const (
	flagCheckInhibitors uint64 = 1 << 0
	flagSkipInhibitors  uint64 = 1 << 4
)

// Inhibitor is one lock, as ListInhibitors lists it.
type Inhibitor struct {
	What, Who, Why, Mode string
	UID, PID             uint32
}

// Session is one session, as ListSessions and its properties show it.
type Session struct {
	ID, User, Class, State, TTY, RemoteHost string
}

// BlockShutdown returns a lock that forbids a reboot. Its uid is that of the caller of the reboot,
// because on a host both are root.
func BlockShutdown(who, why string) Inhibitor {
	return Inhibitor{What: "shutdown", Who: who, Why: why, Mode: "block", UID: callerUID(), PID: 1}
}

// callerUID returns the uid of the caller of the fake. A test and its agent are one process.
func callerUID() uint32 { return uint32(os.Getuid()) }

// Logind is a fake logind. By default it accepts every reboot but does nothing.
type Logind struct {
	guarded

	service    service
	systemd    Systemd
	answer     string
	failure    *dbus.Error
	unlisted   string
	inhibitors []Inhibitor
	sessions   []Session
	onReboot   func()
	inert      bool
	preparing  bool
	scheduled  any
	calls      []string
	held       map[string]chan struct{}
}

// StartLogind puts a logind of the current systemd on the bus.
func StartLogind(b *Bus) (*Logind, error) {
	l := &Logind{service: service{bus: b, name: logindName}, answer: "yes", scheduled: unscheduled}
	return l, l.Start()
}

// Start brings logind back after Stop or a restart of the bus. As after a boot, no shutdown is
// under way.
func (l *Logind) Start() error {
	l.set(func() { l.preparing = false })
	return l.service.start(l.export)
}

// SetSessions replaces the sessions.
func (l *Logind) SetSessions(sessions ...Session) { l.set(func() { l.sessions = sessions }) }

// Stop takes logind off the bus.
func (l *Logind) Stop() { l.service.stop() }

// SetSystemd chooses the generation.
func (l *Logind) SetSystemd(s Systemd) { l.set(func() { l.systemd = s }) }

// SetCanReboot changes the answer of CanReboot: yes, no, na, challenge, inhibitor-blocked.
func (l *Logind) SetCanReboot(answer string) { l.set(func() { l.answer = answer }) }

// OnReboot is called in a goroutine for each accepted reboot, so the reply is sent at the same
// time. By default it is nil, and nothing happens.
func (l *Logind) OnReboot(f func()) { l.set(func() { l.onReboot = f }) }

// FailReboot makes both reboot methods fail with a D-Bus error, such as
// org.freedesktop.DBus.Error.AccessDenied. An empty name lets them succeed again.
func (l *Logind) FailReboot(name, message string) {
	l.set(func() { l.failure = namedError(name, message) })
}

// FailListInhibitors makes ListInhibitors fail with a D-Bus error whose text differs each time, as
// it does if the bus rejects the call and names the connection. An empty name lets it succeed
// again.
func (l *Logind) FailListInhibitors(name string) { l.set(func() { l.unlisted = name }) }

// AcceptAndDoNothing makes accepted reboots have no effect at all: no callback and no
// PreparingForShutdown.
func (l *Logind) AcceptAndDoNothing(inert bool) { l.set(func() { l.inert = inert }) }

// Hold makes calls of a method, such as ListInhibitors, wait until release is called once. Calls
// lists them already.
func (l *Logind) Hold(method string) (release func()) {
	gate := make(chan struct{})
	l.set(func() { l.held = map[string]chan struct{}{method: gate} })
	return func() {
		l.set(func() { l.held = nil })
		close(gate)
	}
}

// called records a call, and returns once its method is not held.
func (l *Logind) called(method string, args ...any) {
	l.mu.Lock()
	l.calls = append(l.calls, fmt.Sprintf("%s(%s)", method, fmt.Sprint(args...)))
	gate := l.held[method]
	l.mu.Unlock()
	if gate != nil {
		<-gate
	}
}

// SetInhibitors replaces the locks and signals the change as the real one does.
func (l *Logind) SetInhibitors(inhibitors ...Inhibitor) {
	l.set(func() { l.inhibitors = slices.Clone(inhibitors) })
	operations := make([]string, 0, len(inhibitors))
	for _, i := range inhibitors {
		operations = append(operations, i.What)
	}
	changed := map[string]dbus.Variant{"BlockInhibited": dbus.MakeVariant(strings.Join(operations, ":"))}
	_ = l.EmitChanged(logindInterface, changed, []string{}) // A logind that is stopped notifies nobody.
}

// EmitChanged broadcasts PropertiesChanged with any body, valid or not.
func (l *Logind) EmitChanged(body ...any) error {
	return l.service.signal(logindPath, propertiesChanged, body)
}

// Scheduled is the value of property ScheduledShutdown: the type of shutdown, and its time in
// microseconds since 1970.
type Scheduled struct {
	Type string
	USec uint64
}

// unscheduled is the value while nothing is scheduled.
var unscheduled = Scheduled{USec: math.MaxUint64}

// Schedule sets ScheduledShutdown to a value of any type and signals the change as the real one
// does. Nil removes the schedule.
func (l *Logind) Schedule(value any) {
	if value == nil {
		value = unscheduled
	}
	l.set(func() { l.scheduled = value })
	changed := map[string]dbus.Variant{"ScheduledShutdown": dbus.MakeVariant(value)}
	_ = l.EmitChanged(logindInterface, changed, []string{}) // A logind that is stopped notifies nobody.
}

// Calls lists the calls so far in order, for example CanReboot(), RebootWithFlags(0x1),
// Reboot(false), ListInhibitors().
func (l *Logind) Calls() []string {
	return read(&l.guarded, func() []string { return slices.Clone(l.calls) })
}

// Reboots counts the calls that asked for a reboot, accepted or not.
func (l *Logind) Reboots() int {
	isReboot := func(call string) bool { return strings.HasPrefix(call, "Reboot") }
	return len(slices.DeleteFunc(l.Calls(), func(call string) bool { return !isReboot(call) }))
}

func (l *Logind) export(conn *dbus.Conn) error {
	err := conn.ExportMethodTable(map[string]any{
		"CanReboot":       l.canReboot,
		"ListInhibitors":  l.listInhibitors,
		"ListSessions":    l.listSessions,
		"Reboot":          l.reboot,
		"RebootWithFlags": l.rebootWithFlags,
	}, logindPath, logindInterface)
	if err != nil {
		return err
	}
	if err := conn.ExportMethodTable(map[string]any{"Get": l.property}, logindPath, propertiesIface); err != nil {
		return err
	}
	return conn.ExportSubtreeMethodTable(map[string]any{"GetAll": l.session}, sessionsPath, propertiesIface)
}

// sessionsPath is the parent of the objects of sessions.
const sessionsPath = logindPath + "/session"

// sessionEntry is a session in the answer of ListSessions.
type sessionEntry struct {
	ID         string
	UID        uint32
	User, Seat string
	Path       dbus.ObjectPath
}

func (l *Logind) listSessions() ([]sessionEntry, *dbus.Error) {
	l.called("ListSessions")
	known := read(&l.guarded, func() []Session { return l.sessions })
	sessions := make([]sessionEntry, 0, len(known))
	for _, s := range known {
		sessions = append(sessions, sessionEntry{ID: s.ID, User: s.User, Path: sessionsPath + dbus.ObjectPath("/"+s.ID)})
	}
	return sessions, nil
}

// session returns the properties of a session, which godbus tells it by the message.
func (l *Logind) session(call dbus.Message, _ string) (map[string]dbus.Variant, *dbus.Error) {
	path, _ := call.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
	for _, s := range read(&l.guarded, func() []Session { return l.sessions }) {
		if path == sessionsPath+dbus.ObjectPath("/"+s.ID) && s.Class != "" {
			return map[string]dbus.Variant{
				"Class": dbus.MakeVariant(s.Class), "State": dbus.MakeVariant(s.State), "TTY": dbus.MakeVariant(s.TTY),
				"Remote": dbus.MakeVariant(s.RemoteHost != ""), "RemoteHost": dbus.MakeVariant(s.RemoteHost),
			}, nil
		}
	}
	return nil, namedError("org.freedesktop.DBus.Error.UnknownObject", "Unknown object")
}

func (l *Logind) canReboot() (string, *dbus.Error) {
	l.called("CanReboot")
	return read(&l.guarded, func() string { return l.answer }), nil
}

func (l *Logind) listInhibitors() ([]Inhibitor, *dbus.Error) {
	l.called("ListInhibitors")
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unlisted != "" {
		return nil, namedError(l.unlisted, fmt.Sprintf(`Rejected send message; sender=":1.%d" (uid=0 pid=12)`, len(l.calls)))
	}
	return slices.Clone(l.inhibitors), nil
}

func (l *Logind) property(iface, name string) (dbus.Variant, *dbus.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case iface == logindInterface && name == "PreparingForShutdown":
		return dbus.MakeVariant(l.preparing), nil
	case iface == logindInterface && name == "ScheduledShutdown":
		return dbus.MakeVariant(l.scheduled), nil
	}
	return dbus.Variant{}, namedError("org.freedesktop.DBus.Error.UnknownProperty", "Unknown property "+name)
}

func (l *Logind) reboot(interactive bool) *dbus.Error {
	l.called("Reboot", interactive)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.goDown(func(i Inhibitor) bool { return l.systemd <= SystemdWithoutPolkit && i.Mode == "block" })
}

func (l *Logind) rebootWithFlags(flags uint64) *dbus.Error {
	l.called("RebootWithFlags", fmt.Sprintf("%#x", flags))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.systemd == SystemdWithoutFlags:
		return namedError("org.freedesktop.DBus.Error.UnknownMethod", "Unknown method RebootWithFlags")
	case l.systemd == SystemdBefore257 && flags&flagSkipInhibitors != 0:
		return namedError("org.freedesktop.DBus.Error.InvalidArgs", "Invalid flags parameter")
	case l.systemd == SystemdBefore257:
		return l.goDown(func(i Inhibitor) bool { return flags&flagCheckInhibitors != 0 && i.UID != callerUID() })
	}
	return l.goDown(func(i Inhibitor) bool {
		counts := i.Mode == "block" || flags&flagCheckInhibitors != 0 && i.UID != callerUID()
		skipped := flags&flagSkipInhibitors != 0 && (l.systemd == SystemdCurrent || i.Mode != "block")
		return counts && !skipped
	})
}

// goDown accepts a reboot, or refuses it because of a block inhibitor that counts. The caller holds
// the lock.
func (l *Logind) goDown(counts func(Inhibitor) bool) *dbus.Error {
	blocks := func(i Inhibitor) bool {
		return strings.HasPrefix(i.Mode, "block") && strings.Contains(i.What, "shutdown") && counts(i)
	}
	switch {
	case l.failure != nil:
		return l.failure
	case l.preparing:
		return namedError("org.freedesktop.login1.OperationInProgress", "There's already a shutdown or sleep operation in progress")
	case slices.ContainsFunc(l.inhibitors, blocks):
		return namedError("org.freedesktop.DBus.Error.AccessDenied", "Access denied due to active block inhibitor")
	case l.inert:
		return nil
	}
	l.preparing = true
	if l.onReboot != nil {
		go l.onReboot()
	}
	return nil
}
