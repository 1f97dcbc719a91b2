package reboot

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// HoldsUpgrades reports whether upgrades of the host must wait. The driver of an engine calls it
// from its own goroutine.
func (r *Reconciler) HoldsUpgrades(ctx context.Context) bool {
	node, nodeErr := r.writer.cached(ctx)
	bootID, bootErr := host.BootID(r.Host.BootIDFile)
	if err := errors.Join(nodeErr, bootErr); err != nil {
		ctrl.LoggerFrom(ctx).Info("Holding upgrades of the host, because it is unknown whether it is being rebooted", "reason", err.Error())
		return true
	}
	return step.HoldsUpgrades(step.Observation{
		BootID: bootID, Record: protocol.RecordOf(node), Paused: v1alpha1.NodeIsPaused(node.Annotations, r.Clock.Now()),
	})
}

// AnnounceUpgradesLeft emits an event which says that the host upgrades itself under its own
// policy, so the agent does not.
func (r *Reconciler) AnnounceUpgradesLeft(ctx context.Context, policy string) {
	node, err := r.writer.cached(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot determine whose upgrades these are")
		return
	}
	r.announcer.warn(node, v1alpha1.EventUpgradesLeftToHost, "Upgrade", "the host stages updates itself, by rpm-ostreed-automatic.timer (AutomaticUpdatePolicy is %q), "+
		"so the agent does not. To let the agent do it, set AutomaticUpdatePolicy=none in /etc/rpm-ostreed.conf; otherwise leave out "+
		"--rpm-ostree-drive", policy)
}
