// Package fleet is all that decides about reboots at one instant, looked at by the planner that the manager runs.
package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Fleet is the policies and nodes of a cluster at one instant.
type Fleet struct {
	// Now is that instant, by the clock of whoever asks.
	Now time.Time
	// Policies are all policies, by name.
	Policies []v1alpha1.RebootPolicy
	// Governor knows which of them governs which node.
	Governor plan.Governor
	// Manager is what the Lease of the manager says. The zero value was not looked at.
	Manager Manager

	nodes []corev1.Node
	views []*plan.Node
}

// New is the fleet of these policies and nodes.
func New(policies []v1alpha1.RebootPolicy, nodes []corev1.Node, now time.Time) Fleet {
	policies, nodes = slices.Clone(policies), slices.Clone(nodes)
	slices.SortFunc(policies, func(a, b v1alpha1.RebootPolicy) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(nodes, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	return Fleet{
		Now: now, Policies: policies, Governor: plan.NewGovernor(policies), nodes: nodes, views: snapshot.Views(nodes),
	}
}

// With returns the fleet as it would be with these policies applied. The status of one that is
// there stays.
func (f Fleet) With(policies []v1alpha1.RebootPolicy) Fleet {
	all := slices.Clone(f.Policies)
	for _, p := range policies {
		if i := slices.IndexFunc(all, func(other v1alpha1.RebootPolicy) bool { return other.Name == p.Name }); i >= 0 {
			all[i] = *all[i].DeepCopy()
			all[i].Spec = p.Spec
			continue
		}
		all = append(all, p)
	}
	return New(all, f.nodes, f.Now)
}

// Policy is the policy of a name; nil when there is none.
func (f Fleet) Policy(name string) *v1alpha1.RebootPolicy {
	i := slices.IndexFunc(f.Policies, func(p v1alpha1.RebootPolicy) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Policies[i]
}

// Node is the node of a name, as the API server has it and as decisions look at it; nil when there is none.
func (f Fleet) Node(name string) (*corev1.Node, *plan.Node) {
	i, found := slices.BinarySearchFunc(f.views, name, func(n *plan.Node, name string) int { return cmp.Compare(n.Name, name) })
	if !found {
		return nil, nil
	}
	return &f.nodes[i], f.views[i]
}

// Views are all nodes as decisions look at them, by name.
func (f Fleet) Views() []*plan.Node { return f.views }

// Plan is what is decided about a policy.
func (f Fleet) Plan(policy *v1alpha1.RebootPolicy) plan.Plan { return plan.Of(f.Snapshot(policy)) }

// Snapshot is what the manager would decide from; a nil policy represents the nodes that none governs.
func (f Fleet) Snapshot(policy *v1alpha1.RebootPolicy) plan.Snapshot {
	return snapshot.Of(policy, f.Policies, f.views, f.Now)
}

// Governed are the nodes that a policy governs, by name.
func (f Fleet) Governed(policy string) []*plan.Node {
	var governed []*plan.Node
	for _, n := range f.views {
		if f.Governor.Govern(n).Policy == policy {
			governed = append(governed, n)
		}
	}
	return governed
}

// MostSpecific returns the policy of these that selects the fewest nodes, the first by name of
// several.
func (f Fleet) MostSpecific(policies ...string) string {
	count := map[string]int{}
	for _, n := range f.views {
		for _, s := range f.Governor.Selecting(n) {
			count[s.Policy]++
		}
	}
	return slices.MinFunc(policies, func(a, b string) int { return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(a, b)) })
}

// Silent is how many nodes of the cluster no agent has reported for, where one could run.
func (f Fleet) Silent() int { return silent(f.views) }

// Unknown is how many governed nodes may or may not need a reboot. No agent has reported, or the manager sees that none works any more.
func (f Fleet) Unknown(policy *v1alpha1.RebootPolicy) int {
	unknown := silent(f.Governed(policy.Name))
	if agents := policy.Status.Agents; agents != nil {
		unknown = max(unknown, int(agents.Missing))
	}
	return unknown
}

// AgentMissing reports whether the manager sees no agent that works on a node, or none at all. What the last one has reported stays on
// the Node.
func AgentMissing(agents *v1alpha1.AgentsStatus, node string) bool {
	return agents != nil && agents.Missing > 0 && (agents.Ready == 0 || slices.Contains(agents.Nodes, node))
}

func silent(nodes []*plan.Node) (n int) {
	for _, node := range nodes {
		if !node.Reports() && !node.Windows {
			n++
		}
	}
	return n
}

// Ungoverned is what is decided about the nodes that no policy governs.
func (f Fleet) Ungoverned() []plan.Decision { return plan.Ungoverned(f.Governor, f.views) }

// Torn reports whether a grant is on a node and in no ledger. It is mostly a sign that the nodes are newer than the policies, as the
// two are watched separately.
func (f Fleet) Torn() bool {
	return slices.ContainsFunc(f.Policies, func(p v1alpha1.RebootPolicy) bool { return len(f.Plan(&p).Adopted) > 0 })
}

// Next is the earliest instant at which time alone changes what is decided. Zero: none.
func (f Fleet) Next() time.Time {
	var next time.Time
	for i := range f.Policies {
		next = timing.Earliest(next, f.Plan(&f.Policies[i]).Next)
	}
	return next
}

// Reboot is one granted reboot, for people.
type Reboot struct {
	Node string `json:"node"`
	// Number is the grant's.
	Number int64 `json:"number"`
	// Phase is how far it is, as the planner calls it.
	Phase plan.RebootState `json:"phase"`
	// Since is when the phase began.
	Since time.Time `json:"since"`
	// Reason and Message are the planner's.
	Reason  v1alpha1.Reason `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	// Until is when time alone changes something: a deadline, or the end of settling. Zero: none.
	Until time.Time `json:"until,omitzero"`
	// Drain is what the agent reports of its drain: the pods in the way, each with its PodDisruptionBudget. Once they have left, it is the
	// volumes that are waited for. Empty: it reports nothing, or the phase is not Draining.
	Drain string `json:"drain,omitempty"`
	// Hooks are the hooks of the node that have not approved, and Answer is the command that
	// answers for the first of them by hand.
	Hooks  []v1alpha1.AnnotationKey `json:"hooks,omitempty"`
	Answer string                   `json:"answer,omitempty"`
	// DrainUntil is when drain.timeout ends the drain. Zero: none is under way, or it is over or overdue.
	DrainUntil time.Time `json:"drainUntil,omitzero"`
	// Overdue reports that a deadline has passed; the slot is kept.
	Overdue bool `json:"overdue,omitempty"`
}

// Note states what the phase does not: why it is overdue, what the drain waits for, or the planner's message. Empty: nothing.
func (r Reboot) Note() string {
	switch {
	case r.Overdue:
		return string(r.Reason) + ": " + r.Message
	case r.Drain != "":
		return r.Drain
	case strings.EqualFold(r.Message, string(r.Phase)):
		return ""
	}
	return r.Message
}

// Shown are the conditions of a Node that people are shown beside those that decisions look at.
var Shown = []corev1.NodeConditionType{corev1.NodeDrainInProgress, corev1.NodeDrained}

// RebootOf is a granted reboot of a plan, for people. The Node must be there.
func (f Fleet) RebootOf(t plan.Reboot) Reboot {
	shown := Reboot{
		Node: t.Entry.Node, Number: t.Entry.Seq, Reason: t.Reason, Message: t.Message, Until: t.Until, Overdue: !t.FailedAt.IsZero(),
	}
	shown.Phase, shown.Since = t.State()
	if shown.Hooks = t.WaitingHooks(); len(shown.Hooks) > 0 {
		shown.Answer = t.AnswerHook()
	}
	if shown.Phase == plan.StateDraining {
		shown.Drain, shown.DrainUntil = f.drain(t)
	}
	return shown
}

// drain is what the agent reports of a drain, and when drain.timeout ends it. Zero: it is over, or overdue.
func (f Fleet) drain(t plan.Reboot) (report string, until time.Time) {
	if t.FailedAt.IsZero() {
		until = t.DrainUntil
	}
	node, _ := f.Node(t.Entry.Node)
	if c := v1alpha1.NodeCondition(node.Status.Conditions, corev1.NodeDrainInProgress); c.Status == corev1.ConditionTrue {
		return c.Message, until
	}
	if c := v1alpha1.NodeCondition(node.Status.Conditions, corev1.NodeDrained); c.Status == corev1.ConditionTrue && c.Message != "" {
		return c.Message, time.Time{}
	}
	return "", until
}
