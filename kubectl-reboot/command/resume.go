package command

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

func resumeCommand(s *Session) *cobra.Command {
	w := writing{session: s}
	r := resumption{session: s}
	cmd := &cobra.Command{
		Use:   "resume (POLICY|NODE... | -l SELECTOR | --all)",
		Short: "End a pause, or a halt after failures",
		Long: `Let a policy or a node go on. The end of a policy's pause removes spec.pause. The end of its halt after failures is
annotation ` + v1alpha1.AnnotationResume + `, with the reason. The end of a node's pause removes annotation
` + v1alpha1.AnnotationPaused + `.

Without a flag it ends what is in force. A policy that is paused and halted needs a flag: --pause, --halt or both.
--all ends pauses only, also one from before an emergency stop; --dry-run=client lists them.`,
		Example: `  kubectl reboot resume rbp/workers
  kubectl reboot resume rbp/workers --pause
  kubectl reboot resume rbp/workers --halt --reason="disk of n4 replaced"
  kubectl reboot resume node/n4
  kubectl reboot resume --all --dry-run=client`,
		Args:              w.arguments("a policy or a node"),
		ValidArgsFunction: named(0, s.targetNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.now = s.Clock.Now()
			r.pause = r.pause || w.all && !r.halt
			if r.halt && w.selector != "" { // of nodes alone: one refusal is enough for all
				return errNoHalt
			}
			return w.each(cmd.Context(), args, find, byKind(r.node, r.policy))
		},
	}
	w.bind(cmd)
	w.selection.bind(cmd, &v1alpha1.RebootPolicyList{}, "All policies.")
	w.wait.bind(cmd, "each of the nodes is in service and needs no reboot", notInService)
	cmd.Flags().BoolVar(&r.pause, "pause", false, "End the pause, and no halt.")
	cmd.Flags().BoolVar(&r.halt, "halt", false, "End the halt, and no pause. Only for a policy.")
	cmd.Flags().StringVar(&r.reason, "reason", "", "What was repaired; the event of the halt's end shows it.")
	return cmd
}

// resumption is what a call of resume ends. Neither pause nor halt: the one that is in force.
type resumption struct {
	session     *Session
	pause, halt bool
	reason      string
	now         time.Time
}

// policy ends the pause and the halt that were read: the write is refused if there is another by then.
func (r resumption) policy(p *v1alpha1.RebootPolicy) (string, error) {
	paused, halted := pauseOf(p, r.now), haltOf(p)
	pause, halt := r.pause, r.halt
	if !pause && !halt {
		if paused != "" && halted != "" {
			return "", fmt.Errorf("the policy is %s, and it is %s; end one of them by %s, or %s", paused, halted,
				r.session.command("kubectl reboot resume rbp/%s --pause", p.Name), r.session.command("kubectl reboot resume rbp/%s --halt", p.Name))
		}
		pause, halt = true, true
	}
	var ended, left []string
	if paused != "" && pause {
		p.Spec.Pause = nil
		ended = append(ended, "no longer "+paused)
	} else if paused != "" {
		left = append(left, "still "+paused)
	}
	if halted != "" && halt {
		annotate(p, v1alpha1.AnnotationResume, r.reason)
		ended = append(ended, "no longer "+halted)
	} else if halted != "" {
		left = append(left, "still "+halted)
	}
	return r.done(ended, left, halted != "" && halt), nil
}

// done states what was ended, and what is left.
func (r resumption) done(ended, left []string, haltEnded bool) string {
	text := "resumed: "
	switch {
	case len(ended) == 0 && r.pause && !r.halt:
		text = "is not paused"
	case len(ended) == 0 && r.halt && !r.pause:
		text = "is not halted"
	case len(ended) == 0:
		text = "is neither paused nor halted"
	case len(left) > 0:
		text = ""
	}
	text += strings.Join(ended, "; ")
	if len(ended) > 0 && !haltEnded {
		text += r.unwritten()
	}
	if len(left) > 0 {
		text += "; " + strings.Join(left, "; ")
	}
	return text
}

// pauseOf describes the pause that is in force. Empty: none is.
func pauseOf(p *v1alpha1.RebootPolicy, now time.Time) string {
	if !p.Spec.Pause.InForce(now) {
		return ""
	}
	return described("paused", p.Spec.Pause.Reason)
}

// haltOf describes the halt. Empty: the policy has not halted.
func haltOf(p *v1alpha1.RebootPolicy) string {
	if !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionHalted) {
		return ""
	}
	halted := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionHalted)
	return described("halted", strings.TrimSuffix(halted.Message, plan.ResumeHint(p.Name)))
}

func described(what, why string) string {
	if why == "" {
		return what
	}
	return what + " (" + why + ")"
}

var errNoHalt = errors.New("a node has no halt: leave out --halt, or resume its policy")

func (r resumption) node(n *corev1.Node) (string, error) {
	switch {
	case r.halt:
		return "", errNoHalt
	case !v1alpha1.NodeIsPaused(n.Annotations):
		return "is not paused", nil
	}
	delete(n.Annotations, v1alpha1.AnnotationPaused)
	return "resumed" + r.unwritten(), nil
}

// unwritten reports that the end of a pause holds no reason.
func (r resumption) unwritten() string {
	if r.reason == "" {
		return ""
	}
	return ", without the reason: only the end of a halt has one"
}
