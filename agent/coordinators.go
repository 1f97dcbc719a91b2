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

// addCoordinators lets the reconciler see who else may reboot the host and, where --claim-coordinator is set, tells the host
// that it is the agent who does, for the life of the process.
func addCoordinators(mgr manager.Manager, r *reboot.Reconciler, o options) error {
	coordinators := host.Coordinators{Connect: host.SystemBus(o.bus), HostRoot: o.hostRoot}
	if o.claimCoordinator {
		claim := &host.Claim{HostRoot: o.hostRoot, Clock: clock.RealClock{}}
		coordinators.Claim, r.Claim = claim, claim
		err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			return claim.Start(ctrl.LoggerInto(ctx, ctrl.Log))
		}))
		if err != nil {
			return fmt.Errorf("adding the claim: %w", err)
		}
	}
	r.Coordinators = coordinators
	return nil
}
