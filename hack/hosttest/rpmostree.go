package hosttest

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/godbus/dbus/v5"
)

// Names of rpm-ostree on the bus.
const (
	rpmostreeName    = "org.projectatomic.rpmostree1"
	sysrootPath      = dbus.ObjectPath("/org/projectatomic/rpmostree1/Sysroot")
	sysrootInterface = rpmostreeName + ".Sysroot"
	osPath           = dbus.ObjectPath("/org/projectatomic/rpmostree1/fedora_coreos")
	osInterface      = rpmostreeName + ".OS"
)

// RPMOSTree is a fake rpm-ostree daemon. The bus starts it when it is called. The real one exits
// after a minute without clients. This one does so when Exit is called.
type RPMOSTree struct {
	guarded

	service    service
	activation *activation
	// starting serializes starts.
	starting sync.Mutex

	deployments []Deployment
	policy      string
	garbled     any
	failure     *dbus.Error
	starts      int
	reads       int
	calls       []string
	clients     map[string]string
	before      func()
	late        func()
	upgrade     func(*Transaction) error
	finalizing  func()
	finalized   func()
	transaction *Transaction
}

// InstallRPMOSTree makes rpm-ostree activatable on the bus of a host. The host runs the first
// deployment that is Booted. The daemon is not running yet.
func InstallRPMOSTree(b *Bus, deployments ...Deployment) (*RPMOSTree, error) {
	r := &RPMOSTree{
		service: service{bus: b, name: rpmostreeName}, deployments: slices.Clone(deployments), policy: "none",
		clients: map[string]string{},
	}
	var err error
	r.activation, err = b.activatable(rpmostreeName, r.Start)
	return r, err
}

// Start starts the daemon as a call would. It does nothing if the daemon is running.
func (r *RPMOSTree) Start() error {
	r.starting.Lock()
	defer r.starting.Unlock()
	if r.service.isRunning() {
		return nil
	}
	r.set(func() { r.starts++ })
	return r.service.start(r.export)
}

// Exit takes the daemon off the bus if it is idle, as it exits by itself after a minute. It returns
// false if a client or a transaction keeps the daemon running.
func (r *RPMOSTree) Exit() bool {
	idle := read(&r.guarded, func() bool { return len(r.clients) == 0 && r.transaction == nil })
	if idle {
		r.stop()
	}
	return idle
}

// Crash takes the daemon and its transaction off the bus.
func (r *RPMOSTree) Crash() {
	r.stop()
	var t *Transaction
	r.set(func() { t, r.transaction, r.clients = r.transaction, nil, map[string]string{} })
	if t != nil {
		t.hangUp()
	}
}

// connection returns the open connection. It waits for a start that is under way, because the bus
// passes on calls as soon as the name is taken.
func (r *RPMOSTree) connection() (*dbus.Conn, error) {
	r.starting.Lock()
	defer r.starting.Unlock()
	return r.service.current()
}

// stop waits for a start like connection.
func (r *RPMOSTree) stop() {
	r.starting.Lock()
	defer r.starting.Unlock()
	r.service.stop()
}

// Activates sets whether the bus succeeds in starting the daemon.
func (r *RPMOSTree) Activates(works bool) error { return r.activation.works(works) }

// SetDeployments replaces the deployments and, if the daemon is running, notifies the bus, as after
// `rpm-ostree cleanup` or `rpm-ostree rollback`.
func (r *RPMOSTree) SetDeployments(deployments ...Deployment) error {
	r.set(func() { r.deployments = slices.Clone(deployments) })
	return errors.Join(
		r.emitProperties(sysrootPath, sysrootInterface, "Deployments"),
		r.emitProperties(osPath, osInterface, "BootedDeployment", "DefaultDeployment", "RollbackDeployment"),
	)
}

// SetDeploymentsQuietly replaces the deployments. Only the object of the OS signals the change.
func (r *RPMOSTree) SetDeploymentsQuietly(deployments ...Deployment) error {
	r.set(func() { r.deployments = slices.Clone(deployments) })
	return r.emitProperties(osPath, osInterface, "DefaultDeployment")
}

// Stage puts a version first in the boot order, as an upgrade does. It replaces a staged version.
func (r *RPMOSTree) Stage(version string) error {
	kept := slices.DeleteFunc(r.Deployments(), func(d Deployment) bool { return d.Staged })
	return r.SetDeployments(append([]Deployment{{Version: version, Staged: true}}, kept...)...)
}

// Boot reboots the host: the daemon is gone, a locked deployment is removed, and the first of the
// others runs.
func (r *RPMOSTree) Boot() {
	r.Crash()
	r.set(func() {
		r.deployments = slices.DeleteFunc(r.deployments, func(d Deployment) bool { return d.Locked })
		for i := range r.deployments {
			r.deployments[i].Booted, r.deployments[i].Staged = i == 0, false
		}
	})
}

// Deployments lists the deployments in boot order.
func (r *RPMOSTree) Deployments() []Deployment {
	return read(&r.guarded, func() []Deployment { return slices.Clone(r.deployments) })
}

// SetAutomaticUpdatePolicy sets the policy of the host's timer: none, check, stage or apply.
func (r *RPMOSTree) SetAutomaticUpdatePolicy(policy string) error {
	r.set(func() { r.policy = policy })
	return r.emitProperties(sysrootPath, sysrootInterface, "AutomaticUpdatePolicy")
}

// GarbleDeployments replaces property Deployments. A dbus.Variant becomes the value of the
// property, and any other value becomes the whole reply. Nil restores it.
func (r *RPMOSTree) GarbleDeployments(value any) { r.set(func() { r.garbled = value }) }

// FailReads makes reading a property fail with a D-Bus error. An empty name lets it succeed again.
func (r *RPMOSTree) FailReads(name, message string) {
	r.set(func() { r.failure = namedError(name, message) })
}

// BeforeAnswer is called once before the reply to the next read of a property is sent. Signals that
// the daemon sends in it overtake the older reply.
func (r *RPMOSTree) BeforeAnswer(hook func()) { r.set(func() { r.late = hook }) }

// EmitPropertiesChanged emits the signal of the daemon with any body, valid or not.
func (r *RPMOSTree) EmitPropertiesChanged(body ...any) error {
	conn, err := r.connection()
	if err != nil {
		return err
	}
	return emit(conn, sysrootPath, propertiesChanged, body)
}

// Starts returns how many times the daemon has started.
func (r *RPMOSTree) Starts() int { return read(&r.guarded, func() int { return r.starts }) }

// Reads counts the calls that read a property.
func (r *RPMOSTree) Reads() int { return read(&r.guarded, func() int { return r.reads }) }

// Calls lists the calls other than reads in order, for example RegisterClient, Upgrade, Start,
// Cancel.
func (r *RPMOSTree) Calls() []string {
	return read(&r.guarded, func() []string { return slices.Clone(r.calls) })
}

// Clients lists the ids under which clients are registered.
func (r *RPMOSTree) Clients() []string {
	return read(&r.guarded, func() []string { return slices.Sorted(maps.Values(r.clients)) })
}

func (r *RPMOSTree) called(method string) { r.set(func() { r.calls = append(r.calls, method) }) }

// emitProperties emits PropertiesChanged with the current properties. It does nothing if the daemon
// is not running.
func (r *RPMOSTree) emitProperties(path dbus.ObjectPath, iface string, names ...string) error {
	conn, err := r.connection()
	if err != nil {
		return nil //nolint:nilerr // it reads the disk when it starts
	}
	all := read(&r.guarded, func() map[string]dbus.Variant { return r.propertiesOf(iface) })
	maps.DeleteFunc(all, func(name string, _ dbus.Variant) bool { return !slices.Contains(names, name) })
	return emit(conn, path, propertiesChanged, []any{iface, all, []string{}})
}

// watchClients forgets clients that leave the bus, and what they have begun.
func (r *RPMOSTree) watchClients(conn *dbus.Conn) error {
	signals := make(chan *dbus.Signal, 64)
	conn.Signal(signals)
	go func() {
		for signal := range signals {
			if name, gone := whoLeft(signal); gone {
				r.forget(name)
			}
		}
	}()
	return conn.AddMatchSignal(dbus.WithMatchSender("org.freedesktop.DBus"), dbus.WithMatchMember("NameOwnerChanged"))
}

func whoLeft(signal *dbus.Signal) (string, bool) {
	if !strings.HasSuffix(signal.Name, ".NameOwnerChanged") || len(signal.Body) != 3 || signal.Body[2] != "" {
		return "", false
	}
	name, ok := signal.Body[0].(string)
	return name, ok
}

func (r *RPMOSTree) forget(client string) {
	r.mu.Lock()
	delete(r.clients, client)
	t := r.transaction
	r.mu.Unlock()
	if t != nil && t.initiator == client && !t.hasStarted() {
		t.hangUp()
		r.done(t)
	}
}
