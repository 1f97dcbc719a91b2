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
			pause := v1alpha1.Pause{Reason: reason}
			if until != "" {
				end, err := instant(until, s.Clock.Now())
				if err != nil {
					return err
				}
				pause.Until = &end
			}
			policy := pausePolicy(pause)
			if w.all {
				policy = unlessPaused(pause, s.Clock.Now(), policy)
			}
			return w.each(cmd.Context(), args, find, byKind(pauseNode(pause), policy))
		},
	}
	w.bind(cmd)
	w.selection.bind(cmd, &v1alpha1.RebootPolicyList{}, "All policies.")
	w.wait.bind(cmd, "none of the nodes is being drained or rebooted", notDisrupted)
	cmd.Flags().StringVar(&reason, "reason", "", "Why: shown wherever the pause is reported.")
	cmd.Flags().StringVar(&until, "until", "", "When the pause ends by itself: 2026-12-01T06:00:00+01:00, or 2h from now. Only for a policy.")
	return cmd
}

// pausePolicy also ends a spec.urgent that would ignore the pause.
func pausePolicy(pause v1alpha1.Pause) func(p *v1alpha1.RebootPolicy) (string, error) {
	done := "paused"
	if pause.Until != nil {
		done += " until " + pause.Until.UTC().Format(time.RFC3339)
	}
	return func(p *v1alpha1.RebootPolicy) (string, error) {
		overridden := p.Spec.Urgent != nil && slices.Contains(p.Spec.Urgent.Ignore, v1alpha1.UrgentIgnoresPause)
		switch {
		case overridden:
			p.Spec.Urgent, p.Spec.Pause = nil, pause.DeepCopy()
			return done + ", no longer urgent", nil
		case equality.Semantic.DeepEqual(p.Spec.Pause, &pause):
			return "already " + done, nil
		}
		p.Spec.Pause = pause.DeepCopy()
		return done, nil
	}
}

// unlessPaused leaves a pause that lasts as long as the new one, with its reason.
func unlessPaused(pause v1alpha1.Pause, now time.Time, otherwise func(*v1alpha1.RebootPolicy) (string, error)) func(*v1alpha1.RebootPolicy) (string, error) {
	return func(p *v1alpha1.RebootPolicy) (string, error) {
		there := p.Spec.Pause
		if p.Spec.PausedAt(now) && (there.Until == nil || pause.Until != nil && !there.Until.Before(pause.Until)) {
			return "already " + pauseOf(p, now), nil
		}
		return otherwise(p)
	}
}

// pauseNode writes the reason as the value of the annotation, which has no place for an end.
func pauseNode(pause v1alpha1.Pause) func(n *corev1.Node) (string, error) {
	reason := strings.TrimSpace(pause.Reason)
	return func(n *corev1.Node) (string, error) {
		already := v1alpha1.NodeIsPaused(n.Annotations)
		switch {
		case pause.Until != nil:
			return "", errors.New("a node's pause has no end: leave out --until, or pause its policy")
		case reason == "false":
			return "", errors.New(`--reason "false" does not pause a node: give the reason in other words`)
		case already && (reason == "" || reason == v1alpha1.PauseReason(n.Annotations)):
			return "already paused", nil
		}
		annotate(n, v1alpha1.AnnotationPaused, cmp.Or(reason, "true"))
		return "paused", nil
	}
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
