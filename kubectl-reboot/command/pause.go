package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/halt"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
)

func pauseCommand(s *Session) *cobra.Command {
	w := writeOptions{session: s}
	reason, until := "", ""
	cmd := &cobra.Command{
		Use:   "pause (POLICY|NODE... | -l SELECTOR | --all)",
		Short: "Stop new reboots of a policy or a node",
		Long: `Stop new reboots of a policy, with spec.pause, or of a node, with annotation
` + v1alpha1.AnnotationPaused + `. Reboots in progress finish. A grant whose drain has
not begun is cancelled.

With --all this is the emergency stop: it pauses every policy. A pause that lasts
as long or longer is kept.`,
		Example: `  kubectl reboot pause rbp/workers --reason="Black Friday" --until=2026-12-01T06:00:00+01:00
  kubectl reboot pause rbp/workers --until=2h
  kubectl reboot pause node/n4 --reason="disk swap" --until=2d
  kubectl reboot pause --all --reason="incident 4711" --wait`,
		Args:              w.arguments("a policy or a node"),
		ValidArgsFunction: completeNames(0, s.targetNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := pausing{session: s, pause: v1alpha1.Pause{Reason: reason}, all: w.all, now: s.Clock.Now()}
			if until != "" {
				end, err := instant(until, r.now)
				if err != nil {
					return err
				}
				r.pause.Until = &end
			}
			if w.selector != "" { // nodes only, so that an invalid pause is refused once and not for every node
				if err := r.fitsNodes(); err != nil {
					return err
				}
			}
			return w.each(cmd.Context(), args, find, byKind(r.node, r.policy))
		},
	}
	w.bind(cmd)
	w.selection.bind(cmd, &v1alpha1.RebootPolicyList{}, "All policies.")
	w.wait.bind(cmd, "none of the nodes is being drained or rebooted", notDisrupted)
	cmd.Flags().StringVar(&reason, "reason", "", "Reason, which is shown wherever the pause is reported.")
	cmd.Flags().StringVar(&until, "until", "", "When the pause ends by itself, such as 2026-12-01T06:00:00+01:00, or 2h or 2d from now.")
	return cmd
}

// pausing writes the pause of a pause command.
type pausing struct {
	session *Session
	pause   v1alpha1.Pause
	// all keeps a policy's own pause, with its reason, if it lasts at least as long as the new one.
	all bool
	now time.Time
}

// policy writes spec.pause. It removes a spec.urgent.all that would bypass the pause.
func (r pausing) policy(p *v1alpha1.RebootPolicy) (string, error) {
	done := "paused"
	if r.pause.Until != nil {
		done += " until " + moment.Exact(r.pause.Until.Time, r.session.Zone)
	}
	current := p.Spec.Pause
	stays := r.all && current.InForce(r.now) && (current.Until == nil || r.pause.Until != nil && !current.Until.Before(r.pause.Until))
	all := p.Spec.UrgentOrDefault().All
	overridden := all != nil && slices.Contains(all.Ignore, v1alpha1.UrgentIgnoresPause)
	switch {
	case stays && p.Spec.PausedAt(r.now):
		return "already " + pauseOf(p, r.now), nil
	case stays:
		p.Spec.Urgent.All = nil
		return "already " + pauseOf(p, r.now) + ", no longer urgent", nil
	case overridden:
		p.Spec.Urgent.All = nil
		done += ", no longer urgent"
	case equality.Semantic.DeepEqual(current, &r.pause):
		return "already " + done, nil
	}
	p.Spec.Pause = r.pause.DeepCopy()
	if granted := len(p.Status.Grants); granted > 0 {
		done += fmt.Sprintf("; reboots that have begun go on (%d granted)", granted)
	}
	return done, nil
}

// fitsNodes refuses a pause that a node's annotation cannot express.
func (r pausing) fitsNodes() error {
	switch {
	case strings.TrimSpace(r.pause.Reason) == "false":
		return errors.New(`--reason "false" does not pause a node: give the reason in other words`)
	case strings.HasPrefix(strings.TrimSpace(r.pause.Reason), v1alpha1.PauseUntil):
		return fmt.Errorf("--reason begins with %s, which sets the end of a pause: use --until, or give the reason in other words", v1alpha1.PauseUntil)
	}
	return nil
}

// node writes the end and the reason to the annotation.
func (r pausing) node(n *corev1.Node) (string, error) {
	if err := r.fitsNodes(); err != nil {
		return "", err
	}
	until, why := v1alpha1.NodePause(n.Annotations)
	reason, done, sameEnd := strings.TrimSpace(r.pause.Reason), "paused", until.IsZero()
	value := cmp.Or(reason, "true")
	if end := r.pause.Until; end != nil {
		value = strings.TrimSpace(v1alpha1.PauseUntil + end.UTC().Format(time.RFC3339) + " " + reason)
		done, sameEnd = "paused until "+moment.Exact(end.Time, r.session.Zone), end.Time.Equal(until)
	}
	if v1alpha1.NodeIsPaused(n.Annotations, r.now) && sameEnd && (reason == "" || reason == why) {
		return "already " + done, nil
	}
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.AnnotationPaused, value)
	switch phaseOf(protocol.RecordOf(n), n.Status.NodeInfo.BootID) {
	case protocol.PhaseDraining:
		done += "; its drain goes on; to stop it, run: " + r.session.command("kubectl reboot abort %s", n.Name)
	case protocol.PhaseRebooting:
		done += "; its reboot has begun and cannot be stopped"
	case protocol.PhaseAborted: // nothing is in progress
	}
	return done, nil
}

// instant parses --until: a time, or a duration from now. The API stores whole seconds.
func instant(text string, now time.Time) (metav1.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if d, notDuration := v1alpha1.ParseDuration(text); notDuration == nil {
		t, err = now.Add(d), nil
	}
	switch {
	case err != nil:
		return metav1.Time{}, fmt.Errorf("--until %q must be an instant such as 2026-12-01T06:00:00+01:00, or a duration such as 2h or 2d", text)
	case !t.After(now):
		return metav1.Time{}, fmt.Errorf("--until %q is past", text)
	}
	return metav1.NewTime(t.Truncate(time.Second)), nil
}

func resumeCommand(s *Session) *cobra.Command {
	w := writeOptions{session: s, reboots: true}
	r := resumption{session: s}
	cmd := &cobra.Command{
		Use:   "resume (POLICY|NODE... | -l SELECTOR | --all)",
		Short: "End a pause, or a halt after failures",
		Long: `End the pause of a policy or a node, or the halt of a policy after failures. This
removes spec.pause, removes annotation ` + v1alpha1.AnnotationPaused + ` from the node, or
sets annotation ` + v1alpha1.AnnotationResume + ` with the reason.

If a policy is both paused and halted, say what to end: --pause, --halt or both.
--all ends pauses only, including those from before an emergency stop; list them
with --dry-run=client first.`,
		Example: `  kubectl reboot resume rbp/workers
  kubectl reboot resume rbp/workers --pause
  kubectl reboot resume rbp/workers --halt --reason="disk of n4 replaced"
  kubectl reboot resume node/n4
  kubectl reboot resume --all --dry-run=client`,
		Args:              w.arguments("a policy or a node"),
		ValidArgsFunction: completeNames(0, s.targetNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.now = s.Clock.Now()
			r.pause = r.pause || w.all && !r.halt
			if r.halt && w.selector != "" { // nodes only, so that the flag is refused once and not for every node
				return errNoHalt
			}
			return w.each(cmd.Context(), args, find, byKind(r.node, r.policy))
		},
	}
	w.bind(cmd)
	w.ask(cmd, "This resumes %s. Continue?")
	w.selection.bind(cmd, &v1alpha1.RebootPolicyList{}, "All policies.")
	w.wait.bind(cmd, "each of the nodes is in service and needs no reboot", notInService)
	cmd.Flags().BoolVar(&r.pause, "pause", false, "End the pause only.")
	cmd.Flags().BoolVar(&r.halt, "halt", false, "End the halt only. For policies only.")
	cmd.Flags().StringVar(&r.reason, "reason", "", "What you repaired. The event that reports the end of the halt shows it.")
	return cmd
}

// resumption ends what a resume command ends: the pause, the halt, or without flags the one that
// applies.
type resumption struct {
	session     *Session
	pause, halt bool
	reason      string
	now         time.Time
}

// policy ends the pause and the halt that were read. The write fails if they have changed by then.
func (r resumption) policy(p *v1alpha1.RebootPolicy) (string, error) {
	paused, halted := pauseOf(p, r.now), haltOf(p)
	pause, halt := r.pause, r.halt
	if !pause && !halt {
		if paused != "" && halted != "" {
			return "", r.unclear(p.Name, paused, halted)
		}
		pause, halt = true, true
	}
	over := pause && paused == "" && p.Spec.Pause != nil
	var ended, remaining []string
	if paused != "" && pause {
		p.Spec.Pause = nil
		ended = append(ended, "no longer "+paused)
	} else if paused != "" {
		remaining = append(remaining, "still "+paused)
	}
	if halted != "" && halt {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.AnnotationResume, r.reason)
		ended = append(ended, "no longer "+halted)
	} else if halted != "" {
		remaining = append(remaining, "still "+halted)
	}
	text := r.done(ended, remaining, halted != "" && halt)
	if over {
		text += r.removed(p.Spec.Pause.Until.Time)
		p.Spec.Pause = nil
	}
	return text, nil
}

// unclear says how to end either the pause or the halt of a policy that has both.
func (r resumption) unclear(name, paused, halted string) error {
	return fmt.Errorf("the policy is %s, and it is %s; end one of them with %s, or %s", paused, halted,
		r.session.command("kubectl reboot resume rbp/%s --pause", name), r.session.command("kubectl reboot resume rbp/%s --halt", name))
}

// done says what was ended, and what is left.
func (r resumption) done(ended, remaining []string, haltEnded bool) string {
	text := "resumed: "
	switch {
	case len(ended) == 0 && r.pause && !r.halt:
		text = "is not paused"
	case len(ended) == 0 && r.halt && !r.pause:
		text = "is not halted"
	case len(ended) == 0:
		text = "is neither paused nor halted"
	case len(remaining) > 0:
		text = ""
	}
	text += strings.Join(ended, "; ")
	if len(ended) > 0 && !haltEnded {
		text += r.unwritten()
	}
	if len(remaining) > 0 {
		text += "; " + strings.Join(remaining, "; ")
	}
	return text
}

// pauseOf describes the pause in force, or returns "".
func pauseOf(p *v1alpha1.RebootPolicy, now time.Time) string {
	if !p.Spec.Pause.InForce(now) {
		return ""
	}
	return described("paused", p.Spec.Pause.Reason)
}

// haltOf describes the halt, or returns "" if the policy has not halted.
func haltOf(p *v1alpha1.RebootPolicy) string {
	if !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionHalted) {
		return ""
	}
	halted := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionHalted)
	return described("halted", strings.TrimSuffix(halted.Message, halt.ResumeHint(p.Name)))
}

func described(subject, why string) string {
	if why == "" {
		return subject
	}
	return subject + " (" + why + ")"
}

var errNoHalt = errors.New("a node cannot be halted: leave out --halt, or resume its policy")

func (r resumption) node(n *corev1.Node) (string, error) {
	if r.halt {
		return "", errNoHalt
	}
	paused := v1alpha1.NodeIsPaused(n.Annotations, r.now)
	until, _ := v1alpha1.NodePause(n.Annotations)
	if !paused && until.IsZero() {
		return "is not paused", nil
	}
	delete(n.Annotations, v1alpha1.AnnotationPaused)
	if !paused {
		return "is not paused" + r.removed(until), nil
	}
	return "resumed" + r.unwritten(), nil
}

// removed returns a remark that a pause was removed that had ended by itself.
func (r resumption) removed(until time.Time) string {
	return "; removed its pause, which ended " + moment.Exact(until, r.session.Zone)
}

// unwritten returns a remark that the reason was not stored, because only the end of a halt stores
// one.
func (r resumption) unwritten() string {
	if r.reason == "" {
		return ""
	}
	return ", but the reason was not stored, because only the end of a halt stores one"
}
