package rpmostree

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	"github.com/godbus/dbus/v5"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine/service"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/pause"
)

const (
	// DefaultPeriod is how often it is worth looking for an upgrade.
	DefaultPeriod = time.Hour
	// DefaultLimit is what an upgrade gets: downloading an image over a slow line, and writing it to disk.
	DefaultLimit = time.Hour
	// clientID is who this is in rpm-ostree's journal.
	clientID = "reboot-operator"
)

// Driver makes rpm-ostree look for an upgrade, download and stage it, once in a period. It does nothing where the host does so itself,
// another transaction is active or a staged deployment is locked. It changes no unit. That a deployment is staged is not its news: the
// Engine sees it.
type Driver struct {
	// Connect opens the system bus. Required.
	Connect host.Connect
	// Clock times the rounds and the deadline. Required.
	Clock clock.Clock
	// Period between two rounds; up to a tenth is added to each at random, so that hosts that started together do not ask
	// together. Required.
	Period time.Duration
	// Limit is how long a transaction may take before it is cancelled. Required.
	Limit time.Duration
	// HostRoot is where the host's file system is mounted: rpm-ostree serves its transactions in the host's /run, and bootc locks what
	// it has staged there. Empty: /, and no lock of bootc is known.
	HostRoot string
	// Hold is asked before each round; while it is true, none begins. Optional.
	Hold func() bool
	// Ended is called after each round, with the one before it, at first the zero Round. Optional.
	Ended func(round, last Round)
	// Malformed is called for each signal of a transaction that cannot be read and is ignored. Optional.
	Malformed func()
}

// Run drives until ctx ends. A transaction that is under way then is cancelled: without its driver it
// would have no deadline. What goes wrong is reported, and tried again in the next round.
func (d *Driver) Run(ctx context.Context) {
	var last Round
	for wait := rand.N(d.Period/10 + 1); pause.For(ctx, d.Clock, wait); wait = d.Period + rand.N(d.Period/10+1) {
		round, err := d.try(ctx)
		if err != nil {
			round = Round{Outcome: OutcomeFailed, Err: err}
		}
		if ctx.Err() != nil {
			logr.FromContextOrDiscard(ctx).Info("Stopped looking for upgrades", "reason", fmt.Sprint(round.Err))
			return
		}
		d.logRound(ctx, round, last)
		last = round
	}
}

// logRound logs how a round ended: what is new at level 0.
func (d *Driver) logRound(ctx context.Context, round, last Round) {
	log := logr.FromContextOrDiscard(ctx)
	if round.Outcome == last.Outcome && round.Version == last.Version {
		log = log.V(4)
	}
	switch round.Outcome {
	case OutcomeFailed:
		logr.FromContextOrDiscard(ctx).Error(round.Err, "Upgrade of the host failed")
	case OutcomeStaged:
		log.Info("Staged an upgrade of the host", "version", round.Version)
	case OutcomeUpToDate:
		log.Info("Found no upgrade of the host")
	case OutcomeLeftToHost:
		log.Info("Left upgrades to rpm-ostreed-automatic.timer, as the host's AutomaticUpdatePolicy sets", "policy", round.Policy)
	default:
		log.Info("Left the host alone", "reason", string(round.Outcome))
	}
	if d.Ended != nil {
		d.Ended(round, last)
	}
}

// progressInterval is how often a transaction's progress is worth a line in the log.
const progressInterval = 10 * time.Second

// try looks at the host and, if nothing prevents it, upgrades it. Its connection is its own: a bus that restarts
// costs one round at most.
func (d *Driver) try(ctx context.Context) (Round, error) {
	if d.Hold != nil && d.Hold() {
		return Round{Outcome: OutcomeHeld}, nil
	}
	conn, err := d.Connect(ctx)
	if err != nil {
		return Round{}, err
	}
	defer func() { _ = conn.Close() }()
	ostree := daemon{conn}
	found, err := ostree.sysroot(ctx)
	if err != nil {
		return unread(ctx, ostree, err)
	}
	lockStaged(found.deployments, d.HostRoot)
	if round, alone := found.leftAlone(); alone {
		return round, nil
	}
	if err := ostree.register(ctx); err != nil {
		return Round{}, err
	}
	return d.upgrade(ctx, ostree, found.booted)
}

// unread distinguishes a host without rpm-ostree from one where it cannot be asked. One where it fails to start may look like the
// former: dbus-broker reports both as a name without an owner.
func unread(ctx context.Context, ostree daemon, cause error) (Round, error) {
	if !host.NoOwner(cause) {
		return Round{}, cause
	}
	link := service.Link{Conn: ostree.conn, Name: busName, Limit: callLimit}
	if startable, err := link.Startable(ctx); startable || err != nil {
		return Round{}, errors.Join(cause, err)
	}
	return Round{Outcome: OutcomeAbsent}, nil
}

// upgrade runs one Upgrade to its end. That alone looks for an upgrade, downloads and stages it. AutomaticUpdateTrigger with mode
// check, and then CachedUpdate, would be no better a check. CachedUpdate reports nothing for a host that is based on a container image.
func (d *Driver) upgrade(ctx context.Context, ostree daemon, system dbus.ObjectPath) (Round, error) {
	address, err := ostree.upgrade(ctx, system)
	if err != nil {
		return refused(ctx, ostree, err)
	}
	err = d.transact(ctx, address)
	if errors.Is(err, errJoined) {
		return Round{Outcome: OutcomeBusy}, nil
	}
	if err != nil {
		return Round{}, err
	}
	// Whether something was staged is read and not concluded.
	after, err := ostree.reloaded(ctx)
	if err != nil {
		return Round{}, err
	}
	return after.result(), nil
}

// refused distinguishes a transaction that was faster from a refusal of another kind. GLib's name for the former is a number.
func refused(ctx context.Context, ostree daemon, refusal error) (Round, error) {
	if now, err := ostree.sysroot(ctx); err == nil && now.transaction != "" {
		return Round{Outcome: OutcomeBusy}, nil
	}
	return Round{}, refusal
}

// transact runs the transaction at an address to its end, or cancels it.
func (d *Driver) transact(ctx context.Context, address string) error {
	limit := d.Clock.NewTimer(d.Limit)
	defer limit.Stop()
	socket, err := host.SocketOf(address, d.HostRoot)
	if err != nil {
		return err
	}
	signals := make(chan *dbus.Signal, 64)
	peer, err := dialPeer(ctx, socket, signals)
	if err != nil {
		return fmt.Errorf("connecting to the transaction: %w", err)
	}
	defer func() { _ = peer.Close() }()
	malformed := func(err error) { service.Ignore(ctx, d.Malformed, err) }
	t := transaction{peer: peer, signals: signals, progressed: d.progress(ctx), malformed: malformed}
	err = t.run(ctx, limit.C())
	if errors.Is(err, errOverdue) {
		err = fmt.Errorf("%w: more than %s", err, d.Limit)
	}
	if !isEnd(err) {
		err = errors.Join(err, t.abandon(ctx))
	}
	return err
}

// progress logs what a transaction reports of itself, little of it at level 0.
func (d *Driver) progress(ctx context.Context) func(progress) {
	var last time.Time
	return func(p progress) {
		level := 4
		if now := d.Clock.Now(); now.Sub(last) >= progressInterval {
			last, level = now, 0
		}
		logr.FromContextOrDiscard(ctx).V(level).Info("Upgrading the host", "step", p.text, "percent", p.percent)
	}
}

// Outcome is how a round of the Driver ended.
type Outcome string

const (
	// OutcomeStaged means a deployment waits for a reboot: the Engine reports it.
	OutcomeStaged Outcome = "Staged"
	// OutcomeUpToDate means there is no upgrade.
	OutcomeUpToDate Outcome = "UpToDate"
	// OutcomeLeftToHost means nothing was done because the host stages updates itself: rpm-ostree's AutomaticUpdatePolicy
	// is stage or apply. That is its administrator's choice.
	OutcomeLeftToHost Outcome = "LeftToHost"
	// OutcomeBusy means nothing was done because another transaction is active, or nothing came of it because another
	// client was faster.
	OutcomeBusy Outcome = "Busy"
	// OutcomeLocked means nothing was done because a deployment is staged and locked. Another program, such as Zincati, drives this host,
	// and an upgrade would replace it.
	OutcomeLocked Outcome = "Locked"
	// OutcomeHeld means nothing was done because Hold required it.
	OutcomeHeld Outcome = "Held"
	// OutcomeAbsent means nothing was done because there is no rpm-ostree on this host.
	OutcomeAbsent Outcome = "Absent"
	// OutcomeFailed means rpm-ostree could not be asked, or the upgrade failed. The next round tries again.
	OutcomeFailed Outcome = "Failed"
)

// Round is what the Driver reports of a round.
type Round struct {
	// Outcome is how it ended.
	Outcome Outcome
	// Version that waits for a reboot, with OutcomeStaged. Empty: unknown.
	Version string
	// Policy is rpm-ostree's AutomaticUpdatePolicy, with OutcomeLeftToHost: valid UTF-8 of at most 32 bytes.
	Policy string
	// Err states what went wrong, with OutcomeFailed.
	Err error
}

// errNotBooted is a host whose running system is not one of rpm-ostree's.
var errNotBooted = errors.New("rpm-ostree names no system that this host was booted from")

// maxPolicyBytes is several times what any policy has; an unknown one is passed on.
const maxPolicyBytes = 32

// sysroot is what the Driver has to know before it does something.
type sysroot struct {
	// booted is the object of the operating system that runs.
	booted dbus.ObjectPath
	// policy is AutomaticUpdatePolicy: what rpm-ostreed-automatic.timer does.
	policy string
	// transaction is the method of the active one. Empty: none is.
	transaction string
	// deployments in boot order.
	deployments []deployment
}

// leftAlone is how a round ends that leaves the host alone, and whether it has to. An unknown policy requires that: whatever it is, the
// host has one.
func (s sysroot) leftAlone() (Round, bool) {
	switch s.policy {
	case "", "none", "off", "check":
	default:
		return Round{Outcome: OutcomeLeftToHost, Policy: s.policy}, true
	}
	switch {
	case s.transaction != "":
		return Round{Outcome: OutcomeBusy}, true
	case len(s.deployments) > 0 && s.deployments[0].locked:
		return Round{Outcome: OutcomeLocked}, true
	}
	return Round{}, false
}

// result is how a round ended that ran an upgrade without an error.
func (s sysroot) result() Round {
	if len(s.deployments) > 0 && !s.deployments[0].booted {
		return Round{Outcome: OutcomeStaged, Version: s.deployments[0].version}
	}
	return Round{Outcome: OutcomeUpToDate}
}

// decodeSysroot reads the properties. All have to be there: what is not known may prevent doing anything.
func decodeSysroot(values map[string]dbus.Variant) (sysroot, error) {
	booted, bootedOK := values["Booted"].Value().(dbus.ObjectPath)
	policy, policyOK := values["AutomaticUpdatePolicy"].Value().(string)
	transaction, transactionOK := values["ActiveTransaction"].Value().([]any)
	if !bootedOK || !policyOK || !transactionOK || len(transaction) != 3 {
		return sysroot{}, fmt.Errorf("%w: Booted, AutomaticUpdatePolicy or ActiveTransaction", errMalformed)
	}
	method, methodOK := transaction[0].(string)
	if !methodOK {
		return sysroot{}, fmt.Errorf("%w: ActiveTransaction", errMalformed)
	}
	deployments, _, err := decodeDeployments(values["Deployments"])
	if err != nil {
		return sysroot{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if !booted.IsValid() || booted == "/" {
		return sysroot{}, errNotBooted
	}
	return sysroot{booted: booted, policy: message.Shorten(maxPolicyBytes, policy), transaction: method, deployments: deployments}, nil
}
