package reboot

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// This file is for whoever makes the host upgrade itself beside the reconciler. It writes nothing.

// HoldsUpgrades reports whether no upgrade of the host may begin now: while an attempt is under way or the node is paused,
// and while nobody knows.
func (r *Reconciler) HoldsUpgrades(ctx context.Context) bool {
	node := &corev1.Node{}
	bootID, err := host.BootID(r.BootIDFile)
	if err == nil {
		err = r.Client.Get(ctx, client.ObjectKey{Name: r.Node}, node)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("Holds upgrades of the host, because nobody knows whether it is being rebooted", "reason", err.Error())
		return true
	}
	return holdsUpgrades(node, bootID)
}

// holdsUpgrades reads the record. An active grant counts in any boot: until it is finished the node is watched.
func holdsUpgrades(node *corev1.Node, bootID string) bool {
	o := step.Observation{BootID: bootID, Record: protocol.RecordOf(node)}
	granted := o.Record.Grant != nil && o.Record.Grant.State == protocol.GrantActive
	return o.Record.GrantErr != nil || o.Record.ProgressErr != nil || granted || o.UnderWay() || v1alpha1.NodeIsPaused(node.Annotations)
}

// LogUpgradesLeft emits an event that the host upgrades itself by a policy of its own, and that nobody else does.
func (r *Reconciler) LogUpgradesLeft(ctx context.Context, policy string) {
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: r.Node}, node); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot determine whose upgrades these are")
		return
	}
	r.Events.warn(node, v1alpha1.EventUpgradesLeftToHost, "Upgrade", "the host stages updates itself, by rpm-ostreed-automatic.timer: its "+
		"AutomaticUpdatePolicy is %q. The agent upgrades nothing until it is none in /etc/rpm-ostreed.conf; or leave out "+
		"--rpm-ostree-drive", policy)
}
