// Package fleet holds everything that decides about reboots at one instant, as seen by the planner
// of the manager.
package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Fleet holds the policies and nodes of a cluster at one instant.
type Fleet struct {
	// Now is the instant, by the caller's clock.
	Now time.Time
	// Policies holds all policies, sorted by name.
	Policies []v1alpha1.RebootPolicy
	// Governor knows which policy governs which node.
	Governor governor.Governor
	// Manager is the state of the manager's Lease. The zero value means that it was not read.
	Manager Manager

	nodes []corev1.Node
	views []*record.Node
}

// New returns a fleet of policies and nodes.
func New(policies []v1alpha1.RebootPolicy, nodes []corev1.Node, now time.Time) Fleet {
	policies, nodes = slices.Clone(policies), slices.Clone(nodes)
	slices.SortFunc(policies, func(a, b v1alpha1.RebootPolicy) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(nodes, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	return Fleet{
		Now: now, Policies: policies, Governor: governor.Of(policies), nodes: nodes, views: snapshot.Views(nodes),
	}
}

// With returns the fleet as if these policies were applied. Existing policies keep their status.
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

// Looked returns the fleet as if the agents of the nodes had reported these pods. A node with a
// report that cannot be read stays as it is.
func (f Fleet) Looked(pods map[string]protocol.PreflightReport) Fleet {
	nodes := slices.Clone(f.nodes)
	for i := range nodes {
		found, looked := pods[nodes[i].Name]
		report, err := protocol.ParseAgentReport(nodes[i].Annotations)
		if !looked || err != nil {
			continue
		}
		report.Preflight = &found
		nodes[i].Annotations = maps.Clone(nodes[i].Annotations)
		metav1.SetMetaDataAnnotation(&nodes[i].ObjectMeta, v1alpha1.AnnotationReport, report.String())
	}
	all := New(f.Policies, nodes, f.Now)
	all.Manager = f.Manager
	return all
}

// Needing returns the fleet as if the agents of these nodes had reported that they need a reboot.
func (f Fleet) Needing(names []string) Fleet {
	nodes := slices.Clone(f.nodes)
	for i := range nodes {
		if n := &nodes[i]; slices.Contains(names, n.Name) && !f.views[i].NeedsReboot() {
			n.Status.Conditions = slices.DeleteFunc(slices.Clone(n.Status.Conditions), func(c corev1.NodeCondition) bool { return c.Type == v1alpha1.NodeRebootRequired })
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
				Type: v1alpha1.NodeRebootRequired, Status: corev1.ConditionTrue, Reason: string(v1alpha1.ReasonRequested), LastTransitionTime: metav1.NewTime(f.Now),
			})
		}
	}
	all := New(f.Policies, nodes, f.Now)
	all.Manager = f.Manager
	return all
}

// Policy returns the named policy, or nil.
func (f Fleet) Policy(name string) *v1alpha1.RebootPolicy {
	i := slices.IndexFunc(f.Policies, func(p v1alpha1.RebootPolicy) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Policies[i]
}

// Node returns the named node as the API server and as the planner sees it, or nil.
func (f Fleet) Node(name string) (*corev1.Node, *record.Node) {
	i, found := slices.BinarySearchFunc(f.views, name, func(n *record.Node, name string) int { return cmp.Compare(n.Name, name) })
	if !found {
		return nil, nil
	}
	return &f.nodes[i], f.views[i]
}

// Views returns all nodes as the planner sees them, sorted by name.
func (f Fleet) Views() []*record.Node { return f.views }

// Plan returns the decisions for a policy.
func (f Fleet) Plan(policy *v1alpha1.RebootPolicy) plan.Plan { return plan.Of(f.Snapshot(policy)) }

// Snapshot returns the input of the manager's decisions. A nil policy stands for the nodes that no
// policy governs.
func (f Fleet) Snapshot(policy *v1alpha1.RebootPolicy) plan.Snapshot {
	return snapshot.Of(policy, f.Policies, f.views, f.Now)
}

// Governed returns the nodes that a policy governs, sorted by name.
func (f Fleet) Governed(policy string) []*record.Node {
	var governed []*record.Node
	for _, n := range f.views {
		if f.Governor.Govern(n).Policy == policy {
			governed = append(governed, n)
		}
	}
	return governed
}

// MostSpecific returns the one of the policies that selects the fewest nodes. Ties go to the first
// name.
func (f Fleet) MostSpecific(policies ...string) string {
	count := map[string]int{}
	for _, n := range f.views {
		for _, s := range f.Governor.Selecting(n) {
			count[s.Policy]++
		}
	}
	return slices.MinFunc(policies, func(a, b string) int { return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(a, b)) })
}

// Silent returns the number of nodes for which no agent has ever reported, although one could run
// there.
func (f Fleet) Silent() int { return silent(f.views) }

// Unknown returns the number of governed nodes whose need is unknown, because no agent has reported
// or none works now.
func (f Fleet) Unknown(policy *v1alpha1.RebootPolicy) int {
	missing, unknown := 0, 0
	if agents := policy.Status.Nodes.Agents; agents != nil {
		missing = int(agents.Missing)
	}
	for _, n := range f.Governed(policy.Name) {
		switch {
		case n.NeedsReboot() || n.Outstanding() || n.Windows:
		case !n.Ready: // the manager does not count its agent as missing
			missing++
			unknown++
		case !n.Reports():
			unknown++
		}
	}
	return max(unknown, missing)
}

// Unheard reports whether no agent works on the node, so that its last report may be outdated. That
// the node needs a reboot stays true.
func Unheard(agents *v1alpha1.AgentsStatus, n *record.Node) bool {
	return !n.Ready || AgentMissing(agents, n.Name)
}

// AgentMissing reports whether the manager sees no working agent on the node, or none at all. The
// last report stays on the Node in this case.
func AgentMissing(agents *v1alpha1.AgentsStatus, node string) bool {
	return agents != nil && agents.Missing > 0 && (agents.Ready == 0 || slices.Contains(agents.Nodes, node))
}

func silent(nodes []*record.Node) (n int) {
	for _, node := range nodes {
		if !node.Reports() && !node.Windows {
			n++
		}
	}
	return n
}

// Ungoverned returns the decisions for the nodes that no policy governs.
func (f Fleet) Ungoverned() []plan.Decision { return plan.Ungoverned(f.Governor, f.views) }

// Torn reports whether a node has a grant that is in no ledger. Usually this means that the nodes
// are newer than the policies, because the two are watched separately.
func (f Fleet) Torn() bool {
	return slices.ContainsFunc(f.Policies, func(p v1alpha1.RebootPolicy) bool { return len(f.Plan(&p).Ledger.Adopted) > 0 })
}

// Next returns the earliest time at which a decision changes without an event, or zero.
func (f Fleet) Next() time.Time {
	var next time.Time
	for i := range f.Policies {
		next = timing.Earliest(next, f.Plan(&f.Policies[i]).Next)
	}
	return next
}

// Granted describes one granted reboot for people.
type Granted struct {
	Node string `json:"node"`
	// Number is the sequence number of the grant.
	Number int64 `json:"number"`
	// Phase is the phase of the reboot in the planner.
	Phase underway.RebootState `json:"phase"`
	// Since is the beginning of the phase.
	Since time.Time `json:"since"`
	// Reason and Message come from the planner.
	Reason  v1alpha1.Reason `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	// Until is the next time at which something changes by itself, such as a deadline or the end of
	// settling, or zero.
	Until time.Time `json:"until,omitzero"`
	// Drain is the agent's report about its drain: first the remaining pods with their
	// PodDisruptionBudgets, then the volumes. It is empty without a report and in other phases.
	Drain string `json:"drain,omitempty"`
	// Hooks lists the hooks that have not approved. Answer is a command that approves the first of
	// them by hand.
	Hooks  []v1alpha1.AnnotationKey `json:"hooks,omitempty"`
	Answer string                   `json:"answer,omitempty"`
	// DrainUntil is the time when drain.timeout ends the drain, or zero if none is in progress or
	// it is overdue.
	DrainUntil time.Time `json:"drainUntil,omitzero"`
	// Overdue means that a deadline has passed. The reboot keeps its slot.
	Overdue bool `json:"overdue,omitempty"`
}

// Note returns what the phase does not say: why the reboot is overdue, what the drain waits for, or
// the planner's message. It may be empty.
func (g Granted) Note() string {
	switch {
	case g.Overdue:
		return string(g.Reason) + ": " + g.Message
	case g.Drain != "":
		return g.Drain
	case strings.EqualFold(g.Message, string(g.Phase)):
		return ""
	}
	return g.Message
}

// Shown lists the node conditions that are only for people, in addition to those used in decisions.
var Shown = []corev1.NodeConditionType{corev1.NodeDrainInProgress, corev1.NodeDrained}

// RebootOf describes a granted reboot of a plan. Its Node must exist.
func (f Fleet) RebootOf(t underway.Reboot) Granted {
	shown := Granted{
		Node: t.Entry.Node, Number: t.Entry.Seq, Reason: t.Reason, Message: t.Message, Until: t.Until, Overdue: !t.FailedAt.IsZero(),
	}
	shown.Phase, shown.Since = t.State()
	if shown.Hooks = t.WaitingHooks(); len(shown.Hooks) > 0 {
		shown.Answer = t.AnswerHook()
	}
	if shown.Phase == underway.StateDraining {
		shown.Drain, shown.DrainUntil = f.drain(t)
	}
	return shown
}

// drain returns the agent's report about a drain, and the time when drain.timeout ends it, or zero
// if it is over or overdue.
func (f Fleet) drain(t underway.Reboot) (report string, until time.Time) {
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
