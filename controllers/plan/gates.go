package plan

import (
	"slices"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// allowed is told of a gate that cannot be asked, where the policy lets reboots go on all the same.
const allowed = "; failurePolicy Allow lets reboots go on"

// gate is what one gate of the policy said last; nil: nothing yet.
func (f *fleet) gate(name string) *v1alpha1.GateStatus {
	i := slices.IndexFunc(f.Gates, func(g v1alpha1.GateStatus) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Gates[i]
}

// waitsForGates reports whether a node needs what the gates say: nothing that is checked before them holds it back. Gates are
// queried only then.
func waitsForGates(p *Plan, objections map[string]*Objection) bool {
	if len(p.Granted) > 0 || slices.ContainsFunc(p.UnderWay(), func(t Flight) bool { return t.NeedsGates }) {
		return true
	}
	for _, o := range objections {
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

func alertFiring(f *fleet, _ *Node) *Objection {
	for _, g := range f.Policy.Spec.PrometheusGates() {
		if said := f.gate(g.Name); said != nil && said.State == v1alpha1.GateFiring {
			return objection(v1alpha1.ReasonAlertFiring, "gate %s of policy %s: %s", g.Name, f.name, said.Message)
		}
	}
	return nil
}

// gateUnreachable: who was asked and could not answer says no, unless the policy takes it for a yes.
func gateUnreachable(f *fleet, _ *Node) *Objection {
	for _, g := range f.Policy.Spec.PrometheusGates() {
		said := f.gate(g.Name)
		if said != nil && said.State == v1alpha1.GateUnreachable && g.FailurePolicyOrDefault() != v1alpha1.GateFailureAllow {
			return objection(v1alpha1.ReasonGateUnreachable, "gate %s of policy %s: %s", g.Name, f.name, said.Message)
		}
	}
	return nil
}

// gateUnknown also has a no for a gate that has not been asked yet, whatever its failurePolicy: the answer is on its way.
func gateUnknown(f *fleet, n *Node) *Objection {
	if o := gateUnreachable(f, n); o != nil {
		return o
	}
	for _, g := range f.Policy.Spec.PrometheusGates() {
		if f.gate(g.Name) == nil {
			o := objection(v1alpha1.ReasonGateUnreachable, "gate %s of policy %s has not been asked yet", g.Name, f.name)
			o.brief = true
			return o
		}
	}
	return nil
}

// gates is what status.gates should be: nothing while no node waits for them. A gate that is being asked for the first time
// since a leader took over keeps what was told of it before.
func (f *fleet) gates(waits bool) []v1alpha1.GateStatus {
	if !waits {
		return nil
	}
	var all []v1alpha1.GateStatus
	for _, g := range f.Policy.Spec.PrometheusGates() {
		told := slices.IndexFunc(f.Policy.Status.Gates, func(s v1alpha1.GateStatus) bool { return s.Name == g.Name })
		said := f.gate(g.Name)
		switch {
		case said != nil:
			now := *said
			if now.State == v1alpha1.GateUnreachable && g.FailurePolicyOrDefault() == v1alpha1.GateFailureAllow {
				now.Message += allowed
			}
			if told >= 0 && f.Policy.Status.Gates[told].State == now.State && f.Policy.Status.Gates[told].Message == now.Message {
				now.At = f.Policy.Status.Gates[told].At
			}
			all = append(all, now)
		case told >= 0:
			all = append(all, f.Policy.Status.Gates[told])
		}
	}
	return all
}
