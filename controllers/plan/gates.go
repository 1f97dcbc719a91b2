package plan

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
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
		all = append(all, policyGate{g.Name, g.FailurePolicyOrDefault() == v1alpha1.ObstacleIgnore})
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

// gateReports is the check for gates that report a state. One that cannot be asked counts for nothing where its failurePolicy is Ignore.
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
const allowed = "; failurePolicy Ignore lets reboots go on"

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

// PreflightOf is what the agents of a policy's nodes are asked before a slot is spent, as the value of its annotation. It
// changes with what the policy specifies about pods, and with nothing else.
func PreflightOf(policy *v1alpha1.RebootPolicy) string { return podCheckOf(policy).annotation }

// podCheck is the check that a policy's agents make of the pods of their nodes.
type podCheck struct {
	request protocol.Preflight
	// annotation is the request as the value of annotation preflight.
	annotation string
}

func podCheckOf(policy *v1alpha1.RebootPolicy) podCheck {
	request := protocol.Preflight{Policy: policy.Name, Revision: podsRevision(&policy.Spec)}
	return podCheck{request: request, annotation: request.String()}
}

// podsRevision returns a hash of what the spec says about pods. If it changes, the answer to a Preflight may change, too.
func podsRevision(spec *v1alpha1.RebootPolicySpec) string {
	drain := spec.DrainOrDefault()
	hash := fnv.New64a()
	// Numbers and strings: they can always be marshalled and written.
	_ = json.NewEncoder(hash).Encode([]any{drain.EmptyDirDataOrDefault(), drain.UnmanagedPodsOrDefault(), drain.Rules, spec.BlockingPods()})
	return fmt.Sprintf("%016x", hash.Sum64())
}

// requestFor is the annotation on a node that waits. An agent checks once its node's turn may come. While an earlier check holds the
// node back, its pods come and go, and the result is not needed.
func (c podCheck) requestFor(o *Blocked) string {
	if o.reaches(podChecks) {
		return c.annotation
	}
	return ""
}

// result is the agent's answer to the request, in this boot. Nil: there is none, and nothing is known.
func (c podCheck) result(n *Node) *protocol.PreflightReport {
	r := n.PreflightReport
	if r == nil || r.BootID != n.BootID || (protocol.Preflight{Policy: r.Policy, Revision: r.Revision}) != c.request {
		return nil
	}
	return r
}

// Supposing is for looking ahead: where nothing is known of the pods on a node, its agent is supposed to find nothing in the way.
// Without gates.blockingPods a missing answer means just that. A host that has just booted is supposed to have been up for long enough: it
// is within two minutes. The order of the nodes stays.
func Supposing(policy *v1alpha1.RebootPolicy, nodes []*Node) []*Node {
	check, asks := podCheckOf(policy), len(policy.Spec.BlockingPods()) > 0
	justBooted := func(b protocol.Blocker) bool { return b.Reason == v1alpha1.ReasonJustBooted }
	supposed := slices.Clone(nodes)
	for i, n := range supposed {
		silent := asks && check.result(n) == nil
		if !silent && !slices.ContainsFunc(n.BlockedBy, justBooted) {
			continue
		}
		other := *n
		other.BlockedBy = slices.DeleteFunc(slices.Clone(n.BlockedBy), justBooted)
		if silent {
			other.PreflightReport = &protocol.PreflightReport{Policy: policy.Name, Revision: podsRevision(&policy.Spec), BootID: n.BootID}
		}
		supposed[i] = &other
	}
	return supposed
}

// undrainablePod holds back a node whose drain must fail. With drain.onTimeout: Reboot, pods that no eviction can remove are no
// reason to wait; see order. A drain that only a closed budget holds up is tried.
func undrainablePod(v view, n *Node) *Blocked {
	r, drain := v.pods.result(n), v.Policy.Spec.DrainOrDefault()
	aborts := drain.OnTimeoutOrDefault() == v1alpha1.DrainTimeoutAbort
	switch {
	case r != nil && r.Kept != nil:
		return blocked(v1alpha1.ReasonUndrainablePod, "can never be drained: %s", named(r.Kept))
	case !aborts:
		return nil
	case r != nil && r.Guarded != nil:
		return blocked(v1alpha1.ReasonUndrainablePod, "cannot be drained: %s", named(r.Guarded))
	case r != nil && r.Closed != nil && !drain.TriesClosedBudgets():
		return blocked(v1alpha1.ReasonUndrainablePod, "cannot be drained: %s", named(r.Closed))
	}
	return nextTry(v, n, r)
}

// nextTry holds back a node with a closed budget until its next try is due. While its pods are unknown, what the last try has
// reported counts. A node that was granted before its agent reported the budget gives its slot to those that can go.
func nextTry(v view, n *Node, r *protocol.PreflightReport) *Blocked {
	until := v.attempts.triesFrom(n)
	waits := v.Now.Before(until)
	switch {
	case r == nil && waits:
		return blocked(v1alpha1.ReasonUndrainablePod, "%s; the next try is due %s",
			lastFailed(n.Progress.Reason, n.Progress.Message), v.instant(until)).until(until)
	case r == nil || r.Closed == nil:
		return nil
	case waits:
		return blocked(v1alpha1.ReasonUndrainablePod, "cannot be drained: %s; the last try failed, and the next is due %s",
			named(r.Closed), v.instant(until)).until(until)
	case v.inEntry[n.Name] && !v.entryOf(n).Try:
		return blocked(v1alpha1.ReasonUndrainablePod, "cannot be drained: %s; tried after the nodes that can go", named(r.Closed))
	}
	return nil
}

// tries counts what the drain of a node with a closed budget costs others: 1 before the first try, and one more for each that
// failed. 0: the node can go, or is not tried.
func (f *fleet) tries(n *Node) int {
	r := f.pods.result(n)
	switch failed := n.failedTry(); {
	case !f.Policy.Spec.DrainOrDefault().TriesClosedBudgets(), r == nil && !failed, r != nil && r.Closed == nil:
		return 0
	case failed:
		return 1 + int(n.Progress.Failures)
	}
	return 1
}

// guarded reports whether a drain of the node could only end by its time-out.
func (c podCheck) guarded(n *Node) bool {
	r := c.result(n)
	return r != nil && (r.Guarded != nil || r.Closed != nil)
}

// blockingPod also blocks where the agent could not look, whatever the policy has for gates: it does not begin after such a look.
func blockingPod(v view, n *Node) *Blocked {
	switch r := v.pods.result(n); {
	case r == nil:
		return nil
	case r.Blocking != nil && len(v.Policy.Spec.BlockingPods()) > 0:
		return blocked(v1alpha1.ReasonBlockingPod, "gates.blockingPods of policy %s waits for %s", v.name, named(r.Blocking))
	case r.Problem != "":
		return blocked(v1alpha1.ReasonGateUnreachable, "the node's agent cannot determine which pods are in the way of a reboot: %s", r.Problem)
	}
	return nil
}

// blockingPodOrUnknown also blocks a new grant while there is no answer. That cancels no grant: the agent looks again before it
// begins.
func blockingPodOrUnknown(v view, n *Node) *Blocked {
	o := blockingPod(v, n)
	if o == nil && v.pods.result(n) == nil && len(v.Policy.Spec.BlockingPods()) > 0 {
		o = blocked(v1alpha1.ReasonGateUnreachable, "the node's agent has not reported yet whether pods of gates.blockingPods run on it; "+
			"where this stays, see whether the agent's pod runs")
	}
	return o
}

// named names pods, each with why it is in the way.
func named(pods *protocol.NamedPods) string {
	names := make([]string, 0, len(pods.Pods))
	for _, p := range pods.Pods {
		if p.Why != "" {
			p.Pod += " (" + p.Why + ")"
		}
		names = append(names, p.Pod)
	}
	return message.Shorten(maxMessage, message.AndMore(names, int(pods.Count)-len(names)))
}
