// Package gates holds what has to agree before a node goes: the gates of its policy, and the pods
// on it, as its agent reports them.
package gates

import (
	"slices"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
)

// Gates are the gates of a policy that are queried, with their last answers.
type Gates struct {
	policy  *v1alpha1.RebootPolicy
	all     []gate
	answers []v1alpha1.GateStatus
}

// gate is one gate of a policy.
type gate struct {
	name string
	// mayFail is true if the gate is ignored while it cannot answer.
	mayFail bool
}

// Of returns the gates of a policy with their last answers. A gate is missing from these if it was
// not queried lately.
func Of(policy *v1alpha1.RebootPolicy, answers []v1alpha1.GateStatus) Gates {
	return Gates{policy: policy, all: gatesOf(&policy.Spec), answers: answers}
}

// Any reports whether the policy has gates to query.
func (g Gates) Any() bool { return len(g.all) > 0 }

// gatesOf returns the gates of a policy to query: those of Prometheus, then those of objects.
func gatesOf(spec *v1alpha1.RebootPolicySpec) []gate {
	queries, objects := spec.PrometheusGates(), spec.ObjectGates()
	all := make([]gate, 0, len(queries)+len(objects))
	for _, g := range queries {
		all = append(all, gate{g.Name, g.FailurePolicyOrDefault() == v1alpha1.ObstacleIgnore})
	}
	for _, name := range v1alpha1.ObjectGateNames(objects) {
		all = append(all, gate{name: name})
	}
	return all
}

// Names returns the names of the policy's gates to query.
func Names(spec *v1alpha1.RebootPolicySpec) []string {
	gates := gatesOf(spec)
	names := make([]string, len(gates))
	for i, g := range gates {
		names[i] = g.name
	}
	return names
}

// find returns the result of one gate, or nil if it has none yet.
func find(results []v1alpha1.GateStatus, name string) *v1alpha1.GateStatus {
	i := slices.IndexFunc(results, func(g v1alpha1.GateStatus) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &results[i]
}

// Reports blocks if a gate has the given state. An unreachable gate does not block if its
// failurePolicy is Ignore.
func (g Gates) Reports(state v1alpha1.GateState, reason v1alpha1.Reason) *block.Block {
	for _, gate := range g.all {
		answer := find(g.answers, gate.name)
		if answer == nil || answer.State != state || state == v1alpha1.GateUnreachable && gate.mayFail {
			continue
		}
		return block.New(reason, "gate %s of policy %s: %s", gate.name, g.policy.Name, answer.Message)
	}
	return nil
}

// Unreachable blocks if a gate cannot answer.
func (g Gates) Unreachable() *block.Block {
	return g.Reports(v1alpha1.GateUnreachable, v1alpha1.ReasonGateUnreachable)
}

// Unknown also blocks while a gate's first query is under way, regardless of its failurePolicy.
func (g Gates) Unknown() *block.Block {
	if b := g.Unreachable(); b != nil {
		return b
	}
	for _, gate := range g.all {
		if find(g.answers, gate.name) == nil {
			b := block.New(v1alpha1.ReasonGateUnreachable, "gate %s of policy %s has not been queried yet", gate.name, g.policy.Name)
			b.ShortLived = true
			return b
		}
	}
	return nil
}

// allowed is added to the message of an unreachable gate if the policy lets reboots go on.
const allowed = "; failurePolicy Ignore lets reboots go on"

// Status returns the wanted status.gates while a node waits for gates. After a change of leader
// a gate keeps its status until its first result.
func (g Gates) Status() []v1alpha1.GateStatus {
	var all []v1alpha1.GateStatus
	for _, gate := range g.all {
		before, last := find(g.policy.Status.Gates, gate.name), find(g.answers, gate.name)
		switch {
		case last != nil:
			now := *last
			if now.State == v1alpha1.GateUnreachable && gate.mayFail {
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
