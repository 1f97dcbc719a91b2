package gates

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Pods is the agents' check of the pods on the nodes of a policy.
type Pods struct {
	policy  *v1alpha1.RebootPolicy
	request protocol.Preflight
	// annotation is the request as a value of annotation preflight.
	annotation string
}

// PodsOf returns the check of the pods on the nodes of a policy.
func PodsOf(policy *v1alpha1.RebootPolicy) Pods {
	request := protocol.Preflight{Policy: policy.Name, Revision: podsRevision(&policy.Spec)}
	return Pods{policy: policy, request: request, annotation: request.String()}
}

// Preflight returns the annotation value that asks the agents of the policy's nodes about their pods
// before a slot is spent. It changes only if the policy's rules for pods change.
func (p Pods) Preflight() string { return p.annotation }

// podsRevision returns a hash of what the spec says about pods. If it changes, the agent's answer
// may change too.
func podsRevision(spec *v1alpha1.RebootPolicySpec) string {
	drain := spec.DrainOrDefault()
	hash := fnv.New64a()
	// Encoding numbers and strings into a hash cannot fail.
	_ = json.NewEncoder(hash).Encode([]any{drain.EmptyDirDataOrDefault(), drain.UnmanagedPodsOrDefault(), drain.Rules, spec.BlockingPods()})
	return fmt.Sprintf("%016x", hash.Sum64())
}

// Request returns the annotation of a node that waits, given whether its agent has to look at the
// pods now. While something else holds the node back for long, the result is not needed.
func (p Pods) Request(n *record.Node, due bool) string {
	if n.HasFailed() && n.Progress.Budgeted { // whatever else holds it back, because the answer ends the back-off
		request := p.request
		request.Failed = n.Progress.Seq
		return request.String()
	}
	if due {
		return p.annotation
	}
	return ""
}

// result returns the agent's answer to the request in this boot, or nil before it.
func (p Pods) result(n *record.Node) *protocol.PreflightReport {
	r := n.PreflightReport
	if r == nil || r.BootID != n.BootID || (protocol.Preflight{Policy: r.Policy, Revision: r.Revision}) != p.request {
		return nil
	}
	return r
}

// Supposing prepares nodes for a forecast. If gates.blockingPods is set and an agent has not
// answered yet, it is assumed to find no pod in the way. A host that has just booted is assumed to
// have been up long enough, as it will be within two minutes. The order of the nodes stays.
func Supposing(policy *v1alpha1.RebootPolicy, nodes []*record.Node) []*record.Node {
	check, asks := PodsOf(policy), len(policy.Spec.BlockingPods()) > 0
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

// Undrainable blocks a node whose drain must fail. With drain.onTimeout: Reboot, pods that no
// eviction can remove do not block; they only affect the order. A drain that only a closed budget
// blocks may be tried.
func (p Pods) Undrainable(n *record.Node, granted *v1alpha1.LedgerEntry, attempts record.Attempts, zone *time.Location) *block.Block {
	r, drain := p.result(n), p.policy.Spec.DrainOrDefault()
	aborts := drain.OnTimeoutOrDefault() == v1alpha1.DrainTimeoutAbort
	switch {
	case r != nil && r.Kept != nil:
		return block.New(v1alpha1.ReasonUndrainablePod, "can never be drained: %s", named(r.Kept))
	case !aborts:
		return nil
	case r != nil && r.Guarded != nil:
		return block.New(v1alpha1.ReasonUndrainablePod, "cannot be drained: %s", named(r.Guarded))
	case r != nil && r.Closed != nil && !drain.TriesClosedBudgets():
		return block.New(v1alpha1.ReasonUndrainablePod, "cannot be drained: %s", named(r.Closed))
	}
	return nextTry(n, r, granted, attempts, zone)
}

// nextTry blocks a node with a closed budget until its next try is due. While its pods are unknown,
// the report of the last try counts. A node that was granted before its agent reported the budget
// gives its slot to nodes that can go.
func nextTry(n *record.Node, r *protocol.PreflightReport, granted *v1alpha1.LedgerEntry, attempts record.Attempts, zone *time.Location) *block.Block {
	until := attempts.TriesFrom(n)
	waits := attempts.Now.Before(until)
	switch {
	case r == nil && waits:
		return block.New(v1alpha1.ReasonUndrainablePod, "%s; the next try is due %s%s",
			record.LastFailed(n.Progress.Reason, n.Progress.Message), timing.InstantIn(until, zone), attempts.RetryHint(n)).EndsAt(until)
	case r == nil || r.Closed == nil:
		return nil
	case waits:
		return block.New(v1alpha1.ReasonUndrainablePod, "cannot be drained: %s; the last try failed, and the next is due %s%s",
			named(r.Closed), timing.InstantIn(until, zone), attempts.RetryHint(n)).EndsAt(until)
	}
	if granted != nil && !granted.Try {
		return block.New(v1alpha1.ReasonUndrainablePod, "cannot be drained: %s; tried after the nodes that can be drained", named(r.Closed))
	}
	return nil
}

// Tries returns the rank of a node that is tried although a budget is closed: 1 before the first
// try, and one more for each failed try. It returns 0 if the node can go or is not tried.
func (p Pods) Tries(n *record.Node) int {
	r := p.result(n)
	switch failed := n.FailedTry(); {
	case !p.policy.Spec.DrainOrDefault().TriesClosedBudgets(), r == nil && !failed, r != nil && r.Closed == nil:
		return 0
	case failed:
		return 1 + int(n.Progress.Failures)
	}
	return 1
}

// Guarded reports whether a drain of the node can only end by its time-out.
func (p Pods) Guarded(n *record.Node) bool {
	r := p.result(n)
	return r != nil && (r.Guarded != nil || r.Closed != nil)
}

// Closed names the pods whose closed budgets may make the drain of a node fail, or returns "".
func (p Pods) Closed(n *record.Node) string {
	r := p.result(n)
	if r == nil || r.Closed == nil {
		return ""
	}
	return named(r.Closed)
}

// Asked reports whether the node's agent reports under the policy which pods are in the way.
func (p Pods) Asked(n *record.Node) bool {
	asked, err := protocol.ParsePreflight(map[string]string{v1alpha1.AnnotationPreflight: n.Preflight})
	return err == nil && asked != nil && asked.Policy == p.request.Policy && asked.Revision == p.request.Revision
}

// InTheWay names the pods that would make a drain of the node fail or wait, or returns "".
func (p Pods) InTheWay(n *record.Node) string {
	r := p.result(n)
	if r == nil {
		return ""
	}
	var names []string
	for _, pods := range []*protocol.NamedPods{r.Kept, r.Guarded, r.Closed, r.Blocking} {
		if pods != nil {
			names = append(names, named(pods))
		}
	}
	return strings.Join(names, ", ")
}

// Blocking blocks for pods of gates.blockingPods. It also blocks if the agent could not check
// the pods, even without that gate, because the agent would not begin.
func (p Pods) Blocking(n *record.Node) *block.Block {
	switch r := p.result(n); {
	case r == nil:
		return nil
	case r.Blocking != nil && len(p.policy.Spec.BlockingPods()) > 0:
		return block.New(v1alpha1.ReasonBlockingPod, "gates.blockingPods of policy %s waits for %s", p.policy.Name, named(r.Blocking))
	case r.Problem != "":
		return block.New(v1alpha1.ReasonGateUnreachable, "the node's agent cannot determine which pods are in the way of a reboot: %s", r.Problem)
	}
	return nil
}

// BlockingOrUnknown also blocks a new grant until the agent has answered. A missing answer
// cancels no grant, because the agent checks again before it begins.
func (p Pods) BlockingOrUnknown(n *record.Node) *block.Block {
	o := p.Blocking(n)
	if o == nil && p.result(n) == nil && len(p.policy.Spec.BlockingPods()) > 0 {
		o = block.New(v1alpha1.ReasonGateUnreachable, "the node's agent has not reported yet whether pods of gates.blockingPods run on it; "+
			"if this lasts, check that the agent's pod runs")
	}
	return o
}

// named lists pods, each with the reason that it is in the way.
func named(pods *protocol.NamedPods) string {
	names := make([]string, 0, len(pods.Pods))
	for _, p := range pods.Pods {
		if p.Why != "" {
			p.Pod += " (" + p.Why + ")"
		}
		names = append(names, p.Pod)
	}
	return message.Shorten(record.MaxMessage, message.AndMore(names, int(pods.Count)-len(names)))
}
