package main

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/reboot"
)

// addHostChanges makes the reconciler look at the host at once when inhibitors, or other programs that may reboot it, may
// have changed. Every agent is always connected to the bus for that, so readiness follows this connection.
func addHostChanges(mgr manager.Manager, r *reboot.Reconciler, o options, ready readiness) error {
	changes := host.Changes{Connect: ready.bus.connect(host.SystemBus(o.bus)), Clock: clock.RealClock{}, Changed: r.Wake.Trigger}
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return changes.Start(ctrl.LoggerInto(ctx, ctrl.Log))
	}))
	if err != nil {
		return fmt.Errorf("adding what detects changes of the host: %w", err)
	}
	return nil
}
