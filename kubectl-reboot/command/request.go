package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

func requestCommand(s *Session) *cobra.Command {
	w := writeOptions{session: s}
	reason, urgent, cancel := "", false, false
	cmd := &cobra.Command{
		Use:   "request (NODE... | -l SELECTOR | --all) (--reason WHY | --cancel)",
		Short: "Request a reboot without an update",
		Long: `Request a reboot without an update, with annotation
` + v1alpha1.AnnotationRebootRequested + `. The node waits for its turn like any other, and
the agent removes the annotation after one confirmed reboot.

With --urgent the node goes before the others and ignores windows and blackouts,
if its policy has spec.urgent.requested. A pause, maxUnavailable,
PodDisruptionBudgets, gates and hooks still apply.

--cancel removes requests, including those made with a label. If the drain of the
node has begun, the node is rebooted anyway; kubectl reboot abort stops that.`,
		Example: `  kubectl reboot request n4 n5 --reason="firmware update"
  kubectl reboot request -l pool=blue --reason="firmware update" --wait
  kubectl reboot request n4 --reason="firmware update" --dry-run=server -o yaml
  kubectl reboot request n4 --reason=CVE-2026-12345 --urgent --wait
  kubectl reboot request n4 --cancel`,
		Args:              w.arguments("at least one node"),
		ValidArgsFunction: completeNames(0, s.nodeNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cancel && (urgent || reason != ""):
				return errors.New("--cancel removes requests: leave out --reason and --urgent")
			case cancel:
				w.question = "This removes the requests of %s. Continue?"
				return w.each(cmd.Context(), args, findNode, byKind(w.cancelRequest, nil))
			case strings.TrimSpace(reason) == "":
				return errors.New(`--reason is missing: it is shown wherever the request is reported`)
			case strings.EqualFold(reason, "false"): // in the annotation, this value means that no reboot is requested
				return fmt.Errorf("--reason %q would not request a reboot: give the reason in other words", reason)
			case strings.HasPrefix(reason, v1alpha1.UrgentPrefix):
				return fmt.Errorf("--reason begins with %s, which makes a request urgent: use --urgent, or give the reason in other words", v1alpha1.UrgentPrefix)
			}
			w.reboots = true
			if urgent {
				return requestUrgently(cmd.Context(), &w, args, reason)
			}
			return w.each(cmd.Context(), args, findNode, byKind(requestFor(reason), nil))
		},
	}
	w.bind(cmd)
	w.ask(cmd, "This requests a reboot of %s. Continue?")
	cmd.Flags().BoolVar(&cancel, "cancel", false, "Remove the requests of the nodes.")
	w.selection.bind(cmd, &corev1.NodeList{}, "All nodes.")
	w.wait.bind(cmd, "each of the nodes is back in service and needs no reboot", notInService)
	cmd.Flags().BoolVar(&urgent, "urgent", false, "Reboot outside the windows, too, and before other nodes. Needs spec.urgent.requested in the policy.")
	cmd.Flags().StringVar(&reason, "reason", "", "Reason, which is shown wherever the request is reported. Required.")
	return cmd
}

// requestFor returns the edit that requests a reboot.
func requestFor(reason string) func(*corev1.Node) (string, error) {
	return func(n *corev1.Node) (string, error) {
		if record.Of(n).Windows {
			return "", errors.New("the node runs Windows, on which agents cannot run, so the operator ignores it")
		}
		if why, ok := v1alpha1.RequestIn(n.Annotations); ok {
			return fmt.Sprintf("reboot already requested (%s)", why), nil
		}
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.AnnotationRebootRequested, reason)
		return "reboot requested", nil
	}
}

// cancelRequest removes a request, whether it is an annotation or a label.
func (w *writeOptions) cancelRequest(n *corev1.Node) (string, error) {
	why, requested := v1alpha1.RebootRequested(n)
	if !requested {
		return "no reboot was requested", nil
	}
	delete(n.Annotations, v1alpha1.AnnotationRebootRequested)
	delete(n.Labels, v1alpha1.AnnotationRebootRequested)
	done := "request cancelled"
	if why != "" {
		done += " (" + why + ")"
	}
	switch phaseOf(protocol.RecordOf(n), n.Status.NodeInfo.BootID) {
	case protocol.PhaseDraining:
		done += "; its drain goes on; to stop it, run: " + w.session.command("kubectl reboot abort %s", n.Name)
	case protocol.PhaseRebooting:
		done += "; its reboot has begun and cannot be stopped"
	case protocol.PhaseAborted: // nothing is in progress
	}
	return done, nil
}

func findNode(ctx context.Context, c client.Client, argument string) (client.Object, error) {
	return get(ctx, c, &corev1.Node{}, bare(nodeKinds, argument)[0])
}

// requestUrgently skips nodes whose policy does not allow urgent requests. It turns an existing
// request into an urgent one.
func requestUrgently(ctx context.Context, w *writeOptions, arguments []string, reason string) error {
	policies, err := w.session.policies(ctx)
	if err != nil {
		return err
	}
	governor := governor.Of(policies)
	return w.each(ctx, arguments, findNode, byKind(func(n *corev1.Node) (string, error) {
		name := governor.Govern(new(record.Of(n))).Policy
		i := slices.IndexFunc(policies, func(p v1alpha1.RebootPolicy) bool { return p.Name == name })
		switch why, ok := v1alpha1.RequestIn(n.Annotations); {
		case i < 0:
			return "", errors.New("no policy governs the node: see " + w.session.command("kubectl reboot explain %s", n.Name))
		case policies[i].Spec.UrgentOrDefault().Requested == nil:
			return "", fmt.Errorf("policy %s does not allow urgent requests: %s", name,
				w.session.command(`kubectl patch rbp %s --type merge -p '{"spec":{"urgent":{"requested":{"ignore":["Windows","Blackouts"]}}}}'`, name))
		case ok && strings.HasPrefix(why, v1alpha1.UrgentPrefix):
			return fmt.Sprintf("reboot already requested (%s)", why), nil
		}
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.AnnotationRebootRequested, v1alpha1.UrgentPrefix+" "+reason)
		return "reboot requested urgently", nil
	}, nil))
}
