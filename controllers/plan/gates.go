package plan

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
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// policyGate is one gate of a policy.
type policyGate struct {
	name string
	// mayFail is true if the gate is ignored while it cannot answer.
	mayFail bool
}

// gatesOf returns the gates of a policy to query: those of Prometheus, then those of objects.
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

// GateNames returns the names of the policy's gates to query.
func GateNames(spec *v1alpha1.RebootPolicySpec) []string {
	gates := gatesOf(spec)
	names := make([]string, len(gates))
	for i, g := range gates {
		names[i] = g.name
	}
	return names
}

// gate returns the last result of one gate, or nil if it has none yet.
func gate(results []v1alpha1.GateStatus, name string) *v1alpha1.GateStatus {
	i := slices.IndexFunc(results, func(g v1alpha1.GateStatus) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &results[i]
}

// gateReports returns the check that blocks if a gate has the given state. An unreachable gate does
// not block if its failurePolicy is Ignore.
func gateReports(state v1alpha1.GateState, reason v1alpha1.Reason) func(c *choice, _ *record.Node) *block.Block {
	return func(c *choice, _ *record.Node) *block.Block {
		for _, g := range c.gates {
			answer := gate(c.Gates, g.name)
			if answer == nil || answer.State != state || state == v1alpha1.GateUnreachable && g.mayFail {
				continue
			}
			return block.New(reason, "gate %s of policy %s: %s", g.name, c.name, answer.Message)
		}
		return nil
	}
}

var gateUnreachable = gateReports(v1alpha1.GateUnreachable, v1alpha1.ReasonGateUnreachable)

// gateUnknown also blocks while a gate's first query is under way, regardless of its failurePolicy.
func gateUnknown(c *choice, n *record.Node) *block.Block {
	if o := gateUnreachable(c, n); o != nil {
		return o
	}
	for _, g := range c.gates {
		if gate(c.Gates, g.name) == nil {
			o := block.New(v1alpha1.ReasonGateUnreachable, "gate %s of policy %s has not been queried yet", g.name, c.name)
			o.ShortLived = true
			return o
		}
	}
	return nil
}

// allowed is added to the message of an unreachable gate if the policy lets reboots go on.
const allowed = "; failurePolicy Ignore lets reboots go on"

// gateStatus returns the wanted status.gates while a node waits for gates. After a change of leader
// a gate keeps its status until its first result.
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

// waitsForGates reports whether a node depends on the gates, because no earlier check holds it
// back. Only then are gates queried.
func waitsForGates(p *Plan, waiting map[string]*Blocked) bool {
	if len(p.Granted) > 0 || slices.ContainsFunc(p.UnderWay(), func(t underway.Reboot) bool { return t.NeedsGates }) {
		return true
	}
	for _, o := range waiting {
		if o.reaches(gateChecks) {
			return true
		}
	}
	return false
}

// PreflightOf returns the annotation value that asks the agents of a policy's nodes about their
// pods before a slot is spent. It changes only if the policy's rules for pods change.
func PreflightOf(policy *v1alpha1.RebootPolicy) string { return podCheckOf(policy).annotation }

// podCheck is the agents' check of the pods on their nodes.
type podCheck struct {
	request protocol.Preflight
	// annotation is the request as a value of annotation preflight.
	annotation string
}

func podCheckOf(policy *v1alpha1.RebootPolicy) podCheck {
	request := protocol.Preflight{Policy: policy.Name, Revision: podsRevision(&policy.Spec)}
	return podCheck{request: request, annotation: request.String()}
}

// podsRevision returns a hash of what the spec says about pods. If it changes, the agent's answer
// may change too.
func podsRevision(spec *v1alpha1.RebootPolicySpec) string {
	drain := spec.DrainOrDefault()
	hash := fnv.New64a()
	// Encoding numbers and strings into a hash cannot fail.
	_ = json.NewEncoder(hash).Encode([]any{drain.EmptyDirDataOrDefault(), drain.UnmanagedPodsOrDefault(), drain.Rules, spec.BlockingPods()})
	return fmt.Sprintf("%016x", hash.Sum64())
}

// lookAhead is how long before a window opens agents look at the pods of their nodes, so that people
// can fix what is in the way. Earlier, pods come and go, and each change would be a write.
const lookAhead = 6 * time.Hour

// requestFor returns the annotation of a node that waits. Its agent looks at the pods when the node's
// turn may come, and from lookAhead before its hours. While anything else holds the node back, the
// result is not needed.
func (c podCheck) requestFor(n *record.Node, o *Blocked, now time.Time) string {
	if n.HasFailed() && n.Progress.Budgeted { // whatever else holds it back, because the answer ends the back-off
		request := c.request
		request.Failed = n.Progress.Seq
		return request.String()
	}
	if o.reaches(podChecks) || !o.looksFrom().IsZero() && !now.Before(o.looksFrom()) {
		return c.annotation
	}
	return ""
}

// looksFrom returns from when the agent of a node that waits for its hours looks at its pods, or the
// zero time if they never come.
func (o *Blocked) looksFrom() time.Time {
	if !o.waitsForHours() || o.Until.IsZero() {
		return time.Time{}
	}
	return o.Until.Add(-lookAhead)
}

// result returns the agent's answer to the request in this boot, or nil if there is none.
func (c podCheck) result(n *record.Node) *protocol.PreflightReport {
	r := n.PreflightReport
	if r == nil || r.BootID != n.BootID || (protocol.Preflight{Policy: r.Policy, Revision: r.Revision}) != c.request {
		return nil
	}
	return r
}

// Supposing prepares nodes for a forecast. If gates.blockingPods is set and an agent has not
// answered yet, it is assumed to find no pod in the way. A host that has just booted is assumed to
// have been up long enough, as it will be within two minutes. The order of the nodes stays.
func Supposing(policy *v1alpha1.RebootPolicy, nodes []*record.Node) []*record.Node {
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

// undrainablePod blocks a node whose drain must fail. With drain.onTimeout: Reboot, pods that no
// eviction can remove do not block; they only affect the order. A drain that only a closed budget
// blocks may be tried.
func undrainablePod(c *choice, n *record.Node) *block.Block {
	r, drain := c.pods.result(n), c.Policy.Spec.DrainOrDefault()
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
	return nextTry(c, n, r)
}

// nextTry blocks a node with a closed budget until its next try is due. While its pods are unknown,
// the report of the last try counts. A node that was granted before its agent reported the budget
// gives its slot to nodes that can go.
func nextTry(c *choice, n *record.Node, r *protocol.PreflightReport) *block.Block {
	until := c.attempts.TriesFrom(n)
	waits := c.Now.Before(until)
	switch {
	case r == nil && waits:
		return block.New(v1alpha1.ReasonUndrainablePod, "%s; the next try is due %s%s",
			record.LastFailed(n.Progress.Reason, n.Progress.Message), c.instant(until), c.attempts.RetryHint(n)).EndsAt(until)
	case r == nil || r.Closed == nil:
		return nil
	case waits:
		return block.New(v1alpha1.ReasonUndrainablePod, "cannot be drained: %s; the last try failed, and the next is due %s%s",
			named(r.Closed), c.instant(until), c.attempts.RetryHint(n)).EndsAt(until)
	}
	if e := c.entries.OwnOf(n.Name); e != nil && !e.Try {
		return block.New(v1alpha1.ReasonUndrainablePod, "cannot be drained: %s; tried after the nodes that can be drained", named(r.Closed))
	}
	return nil
}

// tries returns the rank of a node that is tried although a budget is closed: 1 before the first
// try, and one more for each failed try. It returns 0 if the node can go or is not tried.
func (f *fleet) tries(n *record.Node) int {
	r := f.pods.result(n)
	switch failed := n.FailedTry(); {
	case !f.Policy.Spec.DrainOrDefault().TriesClosedBudgets(), r == nil && !failed, r != nil && r.Closed == nil:
		return 0
	case failed:
		return 1 + int(n.Progress.Failures)
	}
	return 1
}

// guarded reports whether a drain of the node can only end by its time-out.
func (c podCheck) guarded(n *record.Node) bool {
	r := c.result(n)
	return r != nil && (r.Guarded != nil || r.Closed != nil)
}

// ClosedBudgets names the pods whose closed budgets may make the drain of a node fail, or returns "".
// The node is tried nevertheless, after those that can go.
func ClosedBudgets(policy *v1alpha1.RebootPolicy, n *record.Node) string {
	r := podCheckOf(policy).result(n)
	if r == nil || r.Closed == nil {
		return ""
	}
	return named(r.Closed)
}

// LooksAtPods reports whether the node's agent reports under the policy which pods are in the way.
func LooksAtPods(policy *v1alpha1.RebootPolicy, n *record.Node) bool {
	asked, err := protocol.ParsePreflight(map[string]string{v1alpha1.AnnotationPreflight: n.Preflight})
	want := podCheckOf(policy).request
	return err == nil && asked != nil && asked.Policy == want.Policy && asked.Revision == want.Revision
}

// PodsInTheWay names the pods that would make a drain of the node fail or wait, or returns "".
func PodsInTheWay(policy *v1alpha1.RebootPolicy, n *record.Node) string {
	r := podCheckOf(policy).result(n)
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

// blockingPod blocks for pods of gates.blockingPods. It also blocks if the agent could not check
// the pods, even without that gate, because the agent would not begin.
func blockingPod(c *choice, n *record.Node) *block.Block {
	switch r := c.pods.result(n); {
	case r == nil:
		return nil
	case r.Blocking != nil && len(c.Policy.Spec.BlockingPods()) > 0:
		return block.New(v1alpha1.ReasonBlockingPod, "gates.blockingPods of policy %s waits for %s", c.name, named(r.Blocking))
	case r.Problem != "":
		return block.New(v1alpha1.ReasonGateUnreachable, "the node's agent cannot determine which pods are in the way of a reboot: %s", r.Problem)
	}
	return nil
}

// blockingPodOrUnknown also blocks a new grant until the agent has answered. A missing answer
// cancels no grant, because the agent checks again before it begins.
func blockingPodOrUnknown(c *choice, n *record.Node) *block.Block {
	o := blockingPod(c, n)
	if o == nil && c.pods.result(n) == nil && len(c.Policy.Spec.BlockingPods()) > 0 {
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
