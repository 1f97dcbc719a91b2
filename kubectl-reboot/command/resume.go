package command

import (
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func (s *Session) resume() *cobra.Command {
	var w writing
	reason := ""
	cmd := &cobra.Command{
		Use:   "resume POLICY|NODE...",
		Short: "End a pause, or a halt after failures",
		Long: `Let a policy or a node go on: spec.pause of a policy is removed; a policy that has halted after failures gets
annotation ` + v1alpha1.AnnotationResume + `, with the reason; annotation ` + v1alpha1.AnnotationPaused + ` of a node is removed.`,
		Example: `  kubectl reboot resume rbp/workers --reason="disk of n4 replaced"
  kubectl reboot resume node/n4`,
		Args:              atLeast("a policy or a node"),
		ValidArgsFunction: named(0, s.targetNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.each(cmd.Context(), &w, args, find, byKind(resumeNode(reason), resumePolicy(reason)))
		},
	}
	w.bind(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "What was mended; it is told with the halt's end.")
	return cmd
}

// resumePolicy ends the pause and the halt that were read: the write is refused if there is another by then.
func resumePolicy(reason string) func(p *v1alpha1.RebootPolicy) (string, bool, error) {
	return func(p *v1alpha1.RebootPolicy) (string, bool, error) {
		paused := p.Spec.Pause != nil
		halted := meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionHalted)
		p.Spec.Pause = nil
		switch {
		case halted:
			annotate(p, v1alpha1.AnnotationResume, reason)
			return "resumed", true, nil
		case paused:
			return "resumed" + unwritten(reason), true, nil
		}
		return "is neither paused nor halted", false, nil
	}
}

func resumeNode(reason string) func(n *corev1.Node) (string, bool, error) {
	return func(n *corev1.Node) (string, bool, error) {
		if !v1alpha1.NodeIsPaused(n.Annotations) {
			return "is not paused", false, nil
		}
		delete(n.Annotations, v1alpha1.AnnotationPaused)
		return "resumed" + unwritten(reason), true, nil
	}
}

// unwritten says that the end of a pause has no place for a reason.
func unwritten(reason string) string {
	if reason == "" {
		return ""
	}
	return ", without the reason: only the end of a halt has one"
}
