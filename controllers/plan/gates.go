package plan

import (
	"slices"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// gate is the last result of one gate; nil: there is none yet.
func gate(results []v1alpha1.GateStatus, name string) *v1alpha1.GateStatus {
	i := slices.IndexFunc(results, func(g v1alpha1.GateStatus) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &results[i]
}

// reachesGates reports whether all checks before the gates have passed. Nil: all checks have.
func (o *Blocked) reachesGates() bool {
	return o == nil || o.check == v1alpha1.ReasonAlertFiring || o.check == v1alpha1.ReasonGateUnreachable || o.fallsWithTurn()
}

func alertFiring(v view, _ *Node) *Blocked {
	for _, g := range v.Policy.Spec.PrometheusGates() {
		if answer := gate(v.Gates, g.Name); answer != nil && answer.State == v1alpha1.GateFiring {
			return blocked(v1alpha1.ReasonAlertFiring, "gate %s of policy %s: %s", g.Name, v.name, answer.Message)
		}
	}
	return nil
}

// gateUnreachable: who was asked and could not answer refuses, unless the policy takes it for a yes.
func gateUnreachable(v view, _ *Node) *Blocked {
	for _, g := range v.Policy.Spec.PrometheusGates() {
		answer := gate(v.Gates, g.Name)
		if answer != nil && answer.State == v1alpha1.GateUnreachable && g.FailurePolicyOrDefault() != v1alpha1.GateFailureAllow {
			return blocked(v1alpha1.ReasonGateUnreachable, "gate %s of policy %s: %s", g.Name, v.name, answer.Message)
		}
	}
	return nil
}

// gateUnknown also has a no for a gate that has not been asked yet, whatever its failurePolicy: the answer is on its way.
func gateUnknown(v view, n *Node) *Blocked {
	if o := gateUnreachable(v, n); o != nil {
		return o
	}
	for _, g := range v.Policy.Spec.PrometheusGates() {
		if gate(v.Gates, g.Name) == nil {
			o := blocked(v1alpha1.ReasonGateUnreachable, "gate %s of policy %s has not been asked yet", g.Name, v.name)
			o.shortLived = true
			return o
		}
	}
	return nil
}
