package controllers

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/gate"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/secret"
)

// NewGates asks Prometheus servers, with Secrets of the operator's namespace.
func NewGates(mgr ctrl.Manager, o Options) *gate.Evaluator {
	secrets := secret.Reader{Reader: mgr.GetAPIReader(), Namespace: o.Namespace}
	return gate.NewEvaluator(&gate.Prometheus{Secrets: secrets}, clock.RealClock{}, gate.Interval)
}

// gatesSaid is what the policy's gates said last, to this process.
func (r *RebootPolicyReconciler) gatesSaid(policy *v1alpha1.RebootPolicy) []v1alpha1.GateStatus {
	if r.Gates == nil {
		return nil
	}
	return r.Gates.Said(policy.Spec.PrometheusGates())
}

// askGates has the gates asked that are due where a node waits for them, and returns when to look again; zero: nobody waits.
func (r *RebootPolicyReconciler) askGates(ctx context.Context, s *state, p plan.Plan) time.Time {
	if r.Gates == nil || !p.WaitsForGates {
		return time.Time{}
	}
	return r.Gates.Ask(ctx, s.Policy.Name, s.Policy.Spec.PrometheusGates())
}

// gateEvents tells what gates say that said something else in the status before. The first word of one that is clear is
// no news.
func (r *RebootPolicyReconciler) gateEvents(before, after *v1alpha1.RebootPolicy) {
	for _, g := range after.Status.Gates {
		i := slices.IndexFunc(before.Status.Gates, func(b v1alpha1.GateStatus) bool { return b.Name == g.Name })
		was := v1alpha1.GateClear
		if i >= 0 {
			was = before.Status.Gates[i].State
		}
		if was == g.State {
			continue
		}
		switch g.State {
		case v1alpha1.GateFiring:
			r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, v1alpha1.EventAlertFiring, "AskGate", "gate %s: %s", g.Name, g.Message)
		case v1alpha1.GateUnreachable:
			r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, v1alpha1.EventGateUnreachable, "AskGate", "gate %s: %s", g.Name, g.Message)
		case v1alpha1.GateClear:
			r.Recorder.Eventf(after, nil, corev1.EventTypeNormal, v1alpha1.EventGateClear, "AskGate", "gate %s has no result any more", g.Name)
		}
	}
}

// earlier is the earlier of two instants that may be zero, which is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
