package hosttest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/godbus/dbus/v5"
)

const (
	transactionPath      = dbus.ObjectPath("/")
	transactionInterface = rpmostreeName + ".Transaction"
)

// Transaction is a piece of work of the fake rpm-ostree with its own socket. A method such as
// Upgrade creates it, and a call of Start on the socket starts it. It is over when it has finished
// and all clients have hung up.
type Transaction struct {
	guarded

	daemon    *RPMOSTree
	method    string
	initiator string
	address   string
	listener  net.Listener
	work      func(*Transaction) error
	cancelled chan struct{}
	cancel    sync.Once

	peers   map[*dbus.Conn]bool
	started bool
	// result is the body of Finished, or nil until the work has finished.
	result []any
}

// OnUpgrade sets what an upgrade does once it has been started. Finished reports its error. By
// default it is nil, and upgrades are not available.
func (r *RPMOSTree) OnUpgrade(work func(*Transaction) error) { r.set(func() { r.upgrade = work }) }

// BeforeUpgrade is called once when the next Upgrade arrives, before it is handled. It lets a test
// make another client faster.
func (r *RPMOSTree) BeforeUpgrade(hook func()) { r.set(func() { r.before = hook }) }

// Cancelled returns a channel that is closed once the transaction has been cancelled.
func (t *Transaction) Cancelled() <-chan struct{} { return t.cancelled }

// Message sends one line of text.
func (t *Transaction) Message(text string) { t.Emit("Message", text) }

// Percent reports how far a step has got.
func (t *Transaction) Percent(text string, percent uint32) { t.Emit("PercentProgress", text, percent) }

// Download reports how many objects of how many have been fetched.
func (t *Transaction) Download(fetched, requested uint32) {
	type pair struct{ A, B uint32 }
	t.Emit("DownloadProgress", struct{ Start, Elapsed uint64 }{1, 1}, pair{}, struct{ A, B, C uint32 }{},
		struct {
			A, B, C uint32
			D       uint64
		}{}, pair{fetched, requested}, struct{ Bytes, Rate uint64 }{1, 1})
}

// Emit sends a signal with any body, valid or not, to every client on the socket.
func (t *Transaction) Emit(member string, body ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for peer := range t.peers {
		_ = peer.Emit(transactionPath, transactionInterface+"."+member, body...) // The client may be hanging up.
	}
}

func (r *RPMOSTree) handleUpgrade(sender dbus.Sender, _ map[string]dbus.Variant) (string, *dbus.Error) {
	var hook func()
	var work func(*Transaction) error
	r.set(func() { hook, r.before, work = r.before, nil, r.upgrade })
	if hook != nil {
		hook()
	}
	r.called("Upgrade")
	return r.begin("Upgrade", string(sender), work)
}

// OnFinalize is called once a deployment has been finalized, when the real daemon reboots the host.
func (r *RPMOSTree) OnFinalize(reboot func()) { r.set(func() { r.finalized = reboot }) }

// BeforeFinalize is called once when the next transaction finalizes. It lets a test make another
// client faster.
func (r *RPMOSTree) BeforeFinalize(hook func()) { r.set(func() { r.finalizing = hook }) }

// handleFinalize does what `rpm-ostree finalize-deployment` does: it unlocks the staged deployment
// if it has the expected checksum, and reboots.
func (r *RPMOSTree) handleFinalize(sender dbus.Sender, options map[string]dbus.Variant) (string, *dbus.Error) {
	r.called("FinalizeDeployment")
	return r.begin("FinalizeDeployment", string(sender), func(*Transaction) error {
		var hook func()
		r.set(func() { hook, r.finalizing = r.finalizing, nil })
		if hook != nil {
			hook()
		}
		list := r.Deployments()
		unlocked, _ := options["allow-unlocked"].Value().(bool)
		switch {
		case len(list) == 0 || !list[0].Staged:
			return errors.New("No pending staged deployment found") //nolint:staticcheck // rpm-ostree says it like this.
		case options["checksum"].Value() != list[0].checksum():
			return fmt.Errorf("Expected staged base checksum %v, but found %s", options["checksum"], list[0].checksum()) //nolint:staticcheck // rpm-ostree says it like this.
		case !list[0].Locked && !unlocked:
			return errors.New("Staged deployment already unlocked") //nolint:staticcheck // rpm-ostree says it like this.
		}
		list[0].Locked = false
		err := r.SetDeployments(list...)
		if reboot := read(&r.guarded, func() func() { return r.finalized }); reboot != nil {
			reboot()
		}
		return err
	})
}

// automaticUpdateTrigger does what `rpm-ostree upgrade --check` does, for any options.
func (r *RPMOSTree) automaticUpdateTrigger(sender dbus.Sender, _ map[string]dbus.Variant) (bool, string, *dbus.Error) {
	r.called("AutomaticUpdateTrigger")
	address, failure := r.begin("AutomaticUpdateTrigger", string(sender), nil)
	return failure == nil, address, failure
}

// begin creates a transaction, or lets the caller join a running one of the same method.
func (r *RPMOSTree) begin(method, initiator string, work func(*Transaction) error) (string, *dbus.Error) {
	r.mu.Lock()
	if t := r.transaction; t != nil {
		r.mu.Unlock()
		if t.method != method {
			return "", namedError(errBusy, "Transaction in progress: "+t.method+"\n You can cancel it with `rpm-ostree cancel`")
		}
		return t.address, nil
	}
	t, err := r.open(method, initiator, work)
	if err != nil {
		r.mu.Unlock()
		return "", namedError(errFailed, err.Error())
	}
	r.transaction = t
	r.mu.Unlock()
	_ = r.emitProperties(sysrootPath, sysrootInterface, "ActiveTransaction", "ActiveTransactionPath") // It is a hint.
	go t.serve()
	return t.address, nil
}

// open listens on the one socket for transactions, in the folder of the bus.
func (r *RPMOSTree) open(method, initiator string, work func(*Transaction) error) (*Transaction, error) {
	path := filepath.Join(r.service.bus.dir, "txn") // as short as the path of the bus
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	return &Transaction{
		daemon: r, method: method, initiator: initiator, address: "unix:path=" + dbus.EscapeBusAddressValue(path),
		listener: listener, work: work, cancelled: make(chan struct{}), peers: map[*dbus.Conn]bool{},
	}, nil
}

// done removes a transaction that is over.
func (r *RPMOSTree) done(t *Transaction) {
	_ = t.listener.Close()
	r.mu.Lock()
	over := r.transaction == t
	if over {
		r.transaction = nil
	}
	r.mu.Unlock()
	if over {
		_ = r.emitProperties(sysrootPath, sysrootInterface, "ActiveTransaction", "ActiveTransactionPath") // It is a hint.
	}
}

func (t *Transaction) serve() {
	for {
		socket, err := t.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			if err := t.welcome(socket); err != nil {
				_ = socket.Close()
			}
		}()
	}
}

// welcome makes a client a peer for as long as it stays connected.
func (t *Transaction) welcome(socket net.Conn) error {
	peer, err := servePeer(socket)
	if err != nil {
		return err
	}
	if err := t.admit(peer); err != nil {
		return err
	}
	<-peer.Context().Done()
	t.mu.Lock()
	delete(t.peers, peer)
	over := t.result != nil && len(t.peers) == 0
	t.mu.Unlock()
	if over {
		t.daemon.done(t)
	}
	return nil
}

// admit holds the lock until the peer is registered, so that its first call finds it.
func (t *Transaction) admit(peer *dbus.Conn) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := peer.ExportMethodTable(map[string]any{
		"Start":  func() (bool, *dbus.Error) { return t.start(peer), nil },
		"Cancel": func() *dbus.Error { t.handleCancel(); return nil },
	}, transactionPath, transactionInterface)
	if err == nil {
		err = beginServing(peer)
	}
	if err == nil {
		t.peers[peer] = true
	}
	return err
}

// start reports whether this call started the work. A client that calls it after the end receives
// Finished again.
func (t *Transaction) start(peer *dbus.Conn) bool {
	t.daemon.called("Start")
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.started
	t.started = true
	if first {
		go t.run()
	}
	if t.result != nil {
		_ = peer.Emit(transactionPath, transactionInterface+".Finished", t.result...) // The client may be hanging up.
	}
	return first
}

func (t *Transaction) hasStarted() bool { return read(&t.guarded, func() bool { return t.started }) }

func (t *Transaction) run() {
	var err error
	if t.work == nil {
		t.Message("No upgrade available.")
	} else {
		err = t.work(t)
	}
	result := []any{true, ""}
	if err != nil {
		result = []any{false, fmt.Sprint(err)}
	}
	t.Emit("Finished", result...)
	t.mu.Lock()
	t.result = result
	over := len(t.peers) == 0
	t.mu.Unlock()
	if over {
		t.daemon.done(t)
	}
}

func (t *Transaction) handleCancel() {
	t.daemon.called("Cancel")
	t.cancel.Do(func() { close(t.cancelled) })
}

// hangUp closes all connections, as when the daemon exits.
func (t *Transaction) hangUp() {
	_ = t.listener.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	for peer := range t.peers {
		_ = peer.Close()
	}
}
