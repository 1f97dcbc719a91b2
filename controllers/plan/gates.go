package plan

import (
	"slices"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// allowed is told of a gate that cannot be asked, where the policy lets reboots go on all the same.
const allowed = "; failurePolicy Allow lets reboots go on"

// gate is the last result of one gate; nil: there is none yet.
func gate(results []v1alpha1.GateStatus, name string) *v1alpha1.GateStatus {
	i := slices.IndexFunc(results, func(g v1alpha1.GateStatus) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &results[i]
}

// waitsForGates reports whether a node needs what the gates say: nothing that is checked before them holds it back. Gates are
// queried only then.
func (d *draft) waitsForGates() bool {
	if len(d.plan.Granted) > 0 || slices.ContainsFunc(d.plan.UnderWay(), func(t Flight) bool { return t.NeedsGates }) {
		return true
	}
	for _, o := range d.waiting {
		if o.reachesGates() {
			return true
		}
	}
	return false
}

// reachesGates reports whether all checks before the gates have passed. A nil objection means that all checks have.
func (o *Objection) reachesGates() bool {
	return o == nil || o.check == v1alpha1.ReasonAlertFiring || o.check == v1alpha1.ReasonGateUnreachable || o.FallsWithOthers()
}

func alertFiring(v view, _ *Node) *Objection {
	for _, g := range v.Policy.Spec.PrometheusGates() {
		if said := gate(v.Gates, g.Name); said != nil && said.State == v1alpha1.GateFiring {
			return objection(v1alpha1.ReasonAlertFiring, "gate %s of policy %s: %s", g.Name, v.name, said.Message)
		}
	}
	return nil
}

// gateUnreachable: who was asked and could not answer says no, unless the policy takes it for a yes.
func gateUnreachable(v view, _ *Node) *Objection {
	for _, g := range v.Policy.Spec.PrometheusGates() {
		said := gate(v.Gates, g.Name)
		if said != nil && said.State == v1alpha1.GateUnreachable && g.FailurePolicyOrDefault() != v1alpha1.GateFailureAllow {
			return objection(v1alpha1.ReasonGateUnreachable, "gate %s of policy %s: %s", g.Name, v.name, said.Message)
		}
	}
	return nil
}

// gateUnknown also has a no for a gate that has not been asked yet, whatever its failurePolicy: the answer is on its way.
func gateUnknown(v view, n *Node) *Objection {
	if o := gateUnreachable(v, n); o != nil {
		return o
	}
	for _, g := range v.Policy.Spec.PrometheusGates() {
		if gate(v.Gates, g.Name) == nil {
			o := objection(v1alpha1.ReasonGateUnreachable, "gate %s of policy %s has not been asked yet", g.Name, v.name)
			o.brief = true
			return o
		}
	}
	return nil
}

// gates is what status.gates should be: nothing while no node waits for them. A gate that is being queried for the first time
// since a leader took over keeps its status.
func (d *draft) gates(waits bool) []v1alpha1.GateStatus {
	if !waits {
		return nil
	}
	var all []v1alpha1.GateStatus
	for _, g := range d.Policy.Spec.PrometheusGates() {
		before, last := gate(d.Policy.Status.Gates, g.Name), gate(d.Gates, g.Name)
		switch {
		case last != nil:
			now := *last
			if now.State == v1alpha1.GateUnreachable && g.FailurePolicyOrDefault() == v1alpha1.GateFailureAllow {
				now.Message += allowed
			}
			if before != nil && before.State == now.State && before.Message == now.Message {
				now.At = before.At
			}
			all = append(all, now)
		case before != nil:
			all = append(all, *before)
		}
	}
	return all
}
