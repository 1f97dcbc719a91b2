package rpmostree

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/engine/service"
	"github.com/reboot-operator/reboot-operator/agent/host"
)

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
	if round, objected := found.objection(); objected {
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

// upgrade runs one Upgrade to its end. That alone looks for an upgrade, downloads and stages it. AutomaticUpdateTrigger
// with mode check, and then CachedUpdate, would be no better a check: of a host that is based on a container image
// CachedUpdate reports nothing.
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
	socket, err := socketOf(address, d.HostRoot)
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
