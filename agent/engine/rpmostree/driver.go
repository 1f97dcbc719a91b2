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
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

const (
	// DefaultPeriod is the default time between two upgrades.
	DefaultPeriod = time.Hour
	// DefaultLimit is the default time-out of an upgrade, which may download an image over a slow
	// line and write it to disk.
	DefaultLimit = time.Hour
	// clientID identifies the agent in rpm-ostree's journal.
	clientID = "reboot-operator"
)

// Driver makes rpm-ostree check for an upgrade, and download and stage it, once per period. It does
// nothing if the host does so itself, another transaction is active, or a staged deployment is
// locked. It does not change any unit. It does not report a staged deployment, because the Engine
// sees it.
type Driver struct {
	// Connect opens the system bus. Required.
	Connect host.Connect
	// Clock measures the periods and the time-out. Required.
	Clock clock.Clock
	// Period is the time between two rounds. A random time of up to a tenth is added to each, so
	// that hosts that started together do not check together. Required.
	Period time.Duration
	// Limit is the time after which a transaction is cancelled. Required.
	Limit time.Duration
	// HostRoot is the path at which the host's file system is mounted. rpm-ostree serves its
	// transactions in the host's /run, and bootc locks its staged deployment there. If it is empty,
	// / is used and bootc's locks are not seen.
	HostRoot string
	// Hold is called before each round. The round is skipped if it returns true. Optional.
	Hold func() bool
	// Ended is called after each round, with that round and the one before it, which is zero at
	// first. Optional.
	Ended func(round, last Round)
	// Malformed is called for each signal of a transaction that is ignored because it cannot be
	// read. Optional.
	Malformed func()
}

// Run runs rounds until ctx ends. A transaction that is then under way is cancelled, because nobody
// would enforce its time-out. Errors are reported, and the next round tries again.
func (d *Driver) Run(ctx context.Context) {
	var last Round
	for wait := rand.N(d.Period/10 + 1); lifecycle.Pause(ctx, d.Clock, wait); wait = d.Period + rand.N(d.Period/10+1) {
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

// logRound logs the result of a round, at level 0 if it differs from the last one.
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

// progressInterval is the shortest time between two log lines about the progress of a transaction.
const progressInterval = 10 * time.Second

// try checks the host and, if nothing prevents it, upgrades it. It uses its own connection, so a
// bus that restarts costs at most one round.
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

// unread distinguishes a host without rpm-ostree from one on which it cannot be queried. A daemon
// that fails to start may look like the former, because dbus-broker reports both as a name without
// an owner.
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

// upgrade runs one Upgrade to its end, which checks for an upgrade, downloads and stages it.
// AutomaticUpdateTrigger with mode check, followed by CachedUpdate, would not be a better check:
// CachedUpdate is empty for a host that is based on a container image.
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
	// The deployments are read again instead of guessing whether something was staged.
	after, err := ostree.reloaded(ctx)
	if err != nil {
		return Round{}, err
	}
	return after.result(), nil
}

// refused distinguishes a transaction of another client from other refusals. GLib's name for the
// former is a number.
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

// progress logs the progress of a transaction, mostly above level 0.
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

// Outcome is the result of a round of the Driver.
type Outcome string

const (
	// OutcomeStaged means that a deployment waits for a reboot. The Engine reports it.
	OutcomeStaged Outcome = "Staged"
	// OutcomeUpToDate means that no upgrade is available.
	OutcomeUpToDate Outcome = "UpToDate"
	// OutcomeLeftToHost means that nothing was done because the host stages updates itself: its
	// administrator has set rpm-ostree's AutomaticUpdatePolicy to stage or apply.
	OutcomeLeftToHost Outcome = "LeftToHost"
	// OutcomeBusy means that another transaction is active, or that another client was faster.
	OutcomeBusy Outcome = "Busy"
	// OutcomeLocked means that nothing was done because a staged deployment is locked. Another
	// program, such as Zincati, drives this host, and an upgrade would replace that deployment.
	OutcomeLocked Outcome = "Locked"
	// OutcomeHeld means that nothing was done because Hold returned true.
	OutcomeHeld Outcome = "Held"
	// OutcomeAbsent means that nothing was done because this host does not have rpm-ostree.
	OutcomeAbsent Outcome = "Absent"
	// OutcomeFailed means that rpm-ostree could not be queried, or that the upgrade failed. The
	// next round tries again.
	OutcomeFailed Outcome = "Failed"
)

// Round is the result of one round.
type Round struct {
	// Outcome says how the round ended.
	Outcome Outcome
	// Version waits for a reboot, with OutcomeStaged. It is empty if it is unknown.
	Version string
	// Policy is rpm-ostree's AutomaticUpdatePolicy, with OutcomeLeftToHost. It is valid UTF-8 of at
	// most 32 bytes.
	Policy string
	// Err says what went wrong, with OutcomeFailed.
	Err error
}

// errNotBooted means that the running system is not managed by rpm-ostree.
var errNotBooted = errors.New("rpm-ostree does not report a booted deployment")

// maxPolicyBytes is several times the length of any policy. Unknown policies are reported, too.
const maxPolicyBytes = 32

// sysroot holds what the Driver must know before it does anything.
type sysroot struct {
	// booted is the object of the running operating system.
	booted dbus.ObjectPath
	// policy is AutomaticUpdatePolicy, which rpm-ostreed-automatic.timer follows.
	policy string
	// transaction is the method of the active transaction, or empty.
	transaction string
	// deployments in boot order.
	deployments []deployment
}

// leftAlone reports whether the host must be left alone, and returns the result of the round. An
// unknown policy counts as one by which the host updates itself.
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

// result returns the result of a round whose upgrade succeeded.
func (s sysroot) result() Round {
	if len(s.deployments) > 0 && !s.deployments[0].booted {
		return Round{Outcome: OutcomeStaged, Version: s.deployments[0].version}
	}
	return Round{Outcome: OutcomeUpToDate}
}

// decodeSysroot reads the properties. All must be present, because a missing one may forbid an
// upgrade.
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
