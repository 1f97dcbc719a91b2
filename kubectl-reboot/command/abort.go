package command

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func abortCommand(s *Session) *cobra.Command {
	w := writeOptions{session: s}
	cmd := &cobra.Command{
		Use:   "abort NODE...",
		Short: "Stop the drain of a node",
		Long: `Stop the drain of a node by removing the agent's cordon. The agent stops
evicting pods at once.

The attempt counts as failed, and the node is tried again after its back-off. To
prevent that, pause the node first. Once the node has passed the point of no
return, its reboot cannot be stopped, and this command writes nothing.`,
		Example: `  kubectl reboot abort n4
  kubectl reboot pause node/n4 --reason="disk swap" && kubectl reboot abort n4`,
		Args:              atLeast("at least one node"),
		ValidArgsFunction: completeNames(0, s.nodeNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return w.each(cmd.Context(), args, findNode, byKind(func(n *corev1.Node) (string, error) { return abortDrain(s, n) }, nil))
		},
	}
	w.bind(cmd)
	return cmd
}

// abortDrain removes the cordon of a draining agent. The write fails if the drain has ended by
// then.
func abortDrain(s *Session, n *corev1.Node) (string, error) {
	r := protocol.RecordOf(n)
	if err := cmp.Or(r.GrantErr, r.ProgressErr); err != nil {
		return "", fmt.Errorf("%w; the agent ends its drain when it reads this; to follow it, run: %s", err, s.command("kubectl reboot explain %s", n.Name))
	}
	boot := n.Status.NodeInfo.BootID
	switch phase := phaseOf(r, boot); {
	case phase == protocol.PhaseRebooting:
		return "", errors.New("the drain is over and the node is rebooting, which cannot be stopped")
	case phase == "" && hasSlot(r, boot):
		return "", fmt.Errorf("the node holds a grant and has not begun to drain; to cancel the grant, run: %s", s.command("kubectl reboot pause node/%s", n.Name))
	case phase != protocol.PhaseDraining:
		return "is not draining", nil
	case !n.Spec.Unschedulable:
		return "drain already being stopped", nil
	case !r.Progress.Cordoned:
		return "", fmt.Errorf("the node was cordoned before the drain began; to stop the drain and remove that cordon, run: %s", s.command("kubectl uncordon %s", n.Name))
	}
	n.Spec.Unschedulable = false
	return "drain stopped", nil
}

// phaseOf returns the agent's progress with the node's grant in this boot, or "" if it has not
// begun.
func phaseOf(r protocol.Record, boot string) protocol.Phase {
	if p := r.Progress; p != nil && (r.Grant == nil || p.Seq == r.Grant.Seq) && p.BootID == boot {
		return p.Phase
	}
	return ""
}

// hasSlot reports whether the node has a grant for this boot, or runs its before-hooks to get one.
func hasSlot(r protocol.Record, boot string) bool {
	asked := r.Hooks != nil && r.Hooks.Stage == v1alpha1.HooksBefore && r.Hooks.BootID == boot
	return asked || r.Grant != nil && r.Grant.State == protocol.GrantActive && r.Grant.BootID == boot
}
