package rpmostree

import (
	"context"
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/host"
)

// Finalizer finalizes the staged and locked deployment, as `rpm-ostree finalize-deployment` does.
// rpm-ostree then reboots the host. All fields are required.
type Finalizer struct {
	// Connect opens the system bus.
	Connect host.Connect
	// Clock measures the time of the transaction.
	Clock clock.Clock
	// HostRoot is the path at which the host's file system is mounted.
	HostRoot string
}

// errNothingStaged means that the host has nothing to finalize.
var errNothingStaged = errors.New("rpm-ostree has no deployment that is staged and locked")

// Finalize finalizes the deployment. Nil means that it is not locked any more.
func (f Finalizer) Finalize(ctx context.Context) error {
	conn, err := f.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ostree := daemon{conn}
	found, err := ostree.sysroot(ctx)
	if err != nil {
		return err
	}
	if len(found.deployments) == 0 || !found.deployments[0].staged {
		return errNothingStaged
	}
	if !found.deployments[0].locked {
		return nil // The client or an earlier process of the agent was faster.
	}
	if err := ostree.register(ctx); err != nil {
		return err
	}
	address, err := ostree.finalize(ctx, found.booted, found.deployments[0].base())
	if err != nil {
		return err
	}
	d := Driver{Connect: f.Connect, Clock: f.Clock, Limit: callLimit, HostRoot: f.HostRoot}
	return d.transact(ctx, address)
}

// base returns the checksum by which rpm-ostree finalizes a deployment, which is that of the commit
// below layered packages.
func (d deployment) base() string {
	if d.baseChecksum != "" {
		return d.baseChecksum
	}
	return d.checksum
}

// finalize requests that. It returns the address of the transaction, which still has to be started.
func (d daemon) finalize(ctx context.Context, system dbus.ObjectPath, checksum string) (string, error) {
	options := map[string]dbus.Variant{
		"checksum": dbus.MakeVariant(checksum), "allow-unlocked": dbus.MakeVariant(true), "initiating-command-line": dbus.MakeVariant(clientID),
	}
	var address string
	if err := d.call(ctx, system, osInterface+".FinalizeDeployment", 0, options).Store(&address); err != nil {
		return "", fmt.Errorf("asking rpm-ostree to finalize the deployment: %w", err)
	}
	return address, nil
}
