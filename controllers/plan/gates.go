package plan

import (
	"slices"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// policyGate is one gate of a policy.
type policyGate struct {
	name string
	// mayFail reports whether the gate is ignored while it cannot answer.
	mayFail bool
}

// gatesOf are the gates of a policy that are asked: of Prometheus, and then those of objects.
func gatesOf(spec *v1alpha1.RebootPolicySpec) []policyGate {
	queries, objects := spec.PrometheusGates(), spec.ObjectGates()
	all := make([]policyGate, 0, len(queries)+len(objects))
	for _, g := range queries {
		all = append(all, policyGate{g.Name, g.FailurePolicyOrDefault() == v1alpha1.GateFailureAllow})
	}
	for _, name := range v1alpha1.ObjectGateNames(objects) {
		all = append(all, policyGate{name: name})
	}
	return all
}

// GateNames are the names of the gates of a policy that are asked.
func GateNames(spec *v1alpha1.RebootPolicySpec) []string {
	gates := gatesOf(spec)
	names := make([]string, len(gates))
	for i, g := range gates {
		names[i] = g.name
	}
	return names
}

// gate is the last result of one gate; nil: there is none yet.
func gate(results []v1alpha1.GateStatus, name string) *v1alpha1.GateStatus {
	i := slices.IndexFunc(results, func(g v1alpha1.GateStatus) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &results[i]
}

// gateReports is the check for gates that report a state. One that cannot be asked counts for nothing where its failurePolicy is Allow.
func gateReports(state v1alpha1.GateState, reason v1alpha1.Reason) func(v view, _ *Node) *Blocked {
	return func(v view, _ *Node) *Blocked {
		for _, g := range v.gates {
			answer := gate(v.Gates, g.name)
			if answer == nil || answer.State != state || state == v1alpha1.GateUnreachable && g.mayFail {
				continue
			}
			return blocked(reason, "gate %s of policy %s: %s", g.name, v.name, answer.Message)
		}
		return nil
	}
}

var gateUnreachable = gateReports(v1alpha1.GateUnreachable, v1alpha1.ReasonGateUnreachable)

// gateUnknown also blocks where a gate has not been queried yet, whatever its failurePolicy: its first query is under way.
func gateUnknown(v view, n *Node) *Blocked {
	if o := gateUnreachable(v, n); o != nil {
		return o
	}
	for _, g := range v.gates {
		if gate(v.Gates, g.name) == nil {
			o := blocked(v1alpha1.ReasonGateUnreachable, "gate %s of policy %s has not been asked yet", g.name, v.name)
			o.shortLived = true
			return o
		}
	}
	return nil
}

// allowed is reported of a gate that cannot be asked, where the policy lets reboots go on all the same.
const allowed = "; failurePolicy Allow lets reboots go on"

// gateStatus is what status.gates should be while a node waits for gates. A gate that is being queried for the first time
// since a leader took over keeps its status.
func gateStatus(f *fleet) []v1alpha1.GateStatus {
	var all []v1alpha1.GateStatus
	for _, g := range f.gates {
		before, last := gate(f.Policy.Status.Gates, g.name), gate(f.Gates, g.name)
		switch {
		case last != nil:
			now := *last
			if now.State == v1alpha1.GateUnreachable && g.mayFail {
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

// waitsForGates reports whether a node needs what the gates report: nothing that is checked before them holds it back. Gates are
// queried only then.
func waitsForGates(p *Plan, waiting map[string]*Blocked) bool {
	if len(p.Granted) > 0 || slices.ContainsFunc(p.UnderWay(), func(t Reboot) bool { return t.NeedsGates }) {
		return true
	}
	for _, o := range waiting {
		if o.reaches(gateChecks) {
			return true
		}
	}
	return false
}
