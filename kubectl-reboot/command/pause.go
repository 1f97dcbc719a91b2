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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func pauseCommand(s *Session) *cobra.Command {
	w := writing{session: s}
	reason, until := "", ""
	cmd := &cobra.Command{
		Use:   "pause (POLICY|NODE... | -l SELECTOR | --all)",
		Short: "No new reboots of policies or nodes",
		Long: `No new reboots: of a policy, by spec.pause, or of a node, by annotation ` + v1alpha1.AnnotationPaused + `,
whose value is the reason. What is in progress finishes; a node that has its grant and has not begun to drain loses it.

With --all it is the emergency stop: no node of any policy begins. A pause that lasts as long or longer stays as it is.`,
		Example: `  kubectl reboot pause rbp/workers --reason="Black Friday" --until=2026-12-01T06:00:00+01:00
  kubectl reboot pause rbp/workers --until=2h
  kubectl reboot pause node/n4 --reason="disk swap"
  kubectl reboot pause --all --reason="incident 4711" --wait`,
		Args:              w.arguments("a policy or a node"),
		ValidArgsFunction: named(0, s.targetNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := pausing{pause: v1alpha1.Pause{Reason: reason}, all: w.all, now: s.Clock.Now()}
			if until != "" {
				end, err := instant(until, r.now)
				if err != nil {
					return err
				}
				r.pause.Until = &end
			}
			if w.selector != "" { // of nodes alone: one refusal is enough for all
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
	cmd.Flags().StringVar(&reason, "reason", "", "Why: shown wherever the pause is reported.")
	cmd.Flags().StringVar(&until, "until", "", "When the pause ends by itself: 2026-12-01T06:00:00+01:00, or 2h from now. Only for a policy.")
	return cmd
}

// pausing is the pause that a call of pause writes.
type pausing struct {
	pause v1alpha1.Pause
	// all keeps a pause of a policy that lasts as long as the new one, with its reason.
	all bool
	now time.Time
}

// policy writes spec.pause. It removes a spec.urgent that would ignore the pause.
func (r pausing) policy(p *v1alpha1.RebootPolicy) (string, error) {
	done := "paused"
	if r.pause.Until != nil {
		done += " until " + r.pause.Until.UTC().Format(time.RFC3339)
	}
	there := p.Spec.Pause
	stays := r.all && there.InForce(r.now) && (there.Until == nil || r.pause.Until != nil && !there.Until.Before(r.pause.Until))
	overridden := p.Spec.Urgent != nil && slices.Contains(p.Spec.Urgent.Ignore, v1alpha1.UrgentIgnoresPause)
	switch {
	case stays && p.Spec.PausedAt(r.now):
		return "already " + pauseOf(p, r.now), nil
	case stays:
		p.Spec.Urgent = nil
		return "already " + pauseOf(p, r.now) + ", no longer urgent", nil
	case overridden:
		p.Spec.Urgent = nil
		done += ", no longer urgent"
	case equality.Semantic.DeepEqual(there, &r.pause):
		return "already " + done, nil
	}
	p.Spec.Pause = r.pause.DeepCopy()
	return done, nil
}

// fitsNodes refuses what the annotation of a node cannot hold.
func (r pausing) fitsNodes() error {
	switch {
	case r.pause.Until != nil:
		return errors.New("a node's pause has no end: leave out --until, or pause its policy")
	case strings.TrimSpace(r.pause.Reason) == "false":
		return errors.New(`--reason "false" does not pause a node: give the reason in other words`)
	}
	return nil
}

// node writes the reason as the value of the annotation.
func (r pausing) node(n *corev1.Node) (string, error) {
	if err := r.fitsNodes(); err != nil {
		return "", err
	}
	reason := strings.TrimSpace(r.pause.Reason)
	if v1alpha1.NodeIsPaused(n.Annotations) && (reason == "" || reason == v1alpha1.PauseReason(n.Annotations)) {
		return "already paused", nil
	}
	annotate(n, v1alpha1.AnnotationPaused, cmp.Or(reason, "true"))
	return "paused", nil
}

// instant reads --until: an instant, or how long from now. The API keeps whole seconds.
func instant(text string, now time.Time) (metav1.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if d, notDuration := time.ParseDuration(text); notDuration == nil {
		at, err = now.Add(d), nil
	}
	switch {
	case err != nil:
		return metav1.Time{}, fmt.Errorf("--until %q must be an instant such as 2026-12-01T06:00:00+01:00, or a duration such as 2h", text)
	case !at.After(now):
		return metav1.Time{}, fmt.Errorf("--until %q is past", text)
	}
	return metav1.NewTime(at.Truncate(time.Second)), nil
}
