// Package status shows the policies and the nodes of a fleet.
package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/forecast"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
)

// Status is the state of the fleet at one instant.
type Status struct {
	At       time.Time `json:"at"`
	Policies []Policy  `json:"policies"`
	// Ungoverned lists the nodes that need a reboot and that no policy selects.
	Ungoverned []string `json:"ungoverned,omitempty"`
	// Silent is the number of nodes for which no agent has ever reported.
	Silent int `json:"silent,omitempty"`
	// Proposal is a first policy in YAML. It is empty if there is a policy or there are no nodes.
	Proposal string `json:"proposal,omitempty"`
	// Notices lists what needs a person and does not concern a policy, such as a manager that is
	// not running.
	Notices []Notice `json:"notices,omitempty"`
}

// Policy is the state of one policy and its nodes.
type Policy struct {
	Name string        `json:"name"`
	Mode v1alpha1.Mode `json:"mode"`
	// MaxUnavailable is the user's value, of this policy or of the one whose limit it shares. Limit
	// is the same as a number of nodes.
	MaxUnavailable string `json:"maxUnavailable"`
	Limit          int32  `json:"limit"`
	Window         Window `json:"window"`
	Nodes          Nodes  `json:"nodes"`
	// CompletionAt is the time when the last pending node is expected back, or zero if nothing is
	// pending or it is unknown. Stays lists the nodes that it leaves out, because they wait for a
	// person or another system.
	CompletionAt time.Time       `json:"completionAt,omitzero"`
	Stays        []forecast.Stay `json:"stays,omitempty"`
	// MayFail is the number of nodes that it counts although their drains may fail, because of
	// closed PodDisruptionBudgets.
	MayFail int `json:"mayFail,omitempty"`
	// Guessed means that CompletionAt is based on default durations, because no reboot of the
	// policy has been measured.
	Guessed bool `json:"guessed,omitempty"`
	// Unavailable says who uses up the limit.
	Unavailable string          `json:"unavailable,omitempty"`
	InProgress  []fleet.Granted `json:"inProgress,omitempty"`
	// Waiting lists the reasons why nodes wait, in the order of status.blocked.
	Waiting []Waiting `json:"waiting,omitempty"`
	// Due lists nodes that nothing blocks, so that the manager grants their reboot in its next
	// pass.
	Due     []string `json:"due,omitempty"`
	Notices []Notice `json:"notices,omitempty"`
	// Agents is the number of nodes with a working agent as the manager reports it, or nil if it
	// does not.
	Agents *v1alpha1.AgentsStatus `json:"agents,omitempty"`
	// Versions lists the operating system versions of the nodes, like status.versions.
	Versions []v1alpha1.SystemVersions `json:"versions,omitempty"`

	// Plan has the decisions for the policy. Governed lists its nodes, sorted by name.
	Plan     plan.Plan      `json:"-"`
	Governed []*record.Node `json:"-"`
}

// Nodes counts the nodes of a policy.
type Nodes struct {
	Selected int `json:"selected"`
	// Reporting nodes have an agent that knows whether a reboot is needed.
	Reporting int `json:"reporting"`
	// UpToDate nodes are Ready, need no reboot and are not being rebooted, according to an agent that
	// the manager sees working.
	UpToDate   int `json:"upToDate"`
	Pending    int `json:"pending"`
	InProgress int `json:"inProgress"`
	// Waiting nodes need a reboot that has not been granted.
	Waiting int `json:"waiting"`
	Failed  int `json:"failed"`
	// InConflict nodes are selected by this policy and another one of the same priority, so that
	// neither governs them.
	InConflict int `json:"inConflict,omitempty"`
}

// Progress says how many nodes are up to date, with the given words, or that no node is governed.
func (n Nodes) Progress(upToDate string) string {
	text := fmt.Sprintf("%d of %d %s", n.UpToDate, n.Selected, upToDate)
	if n.Selected == 0 {
		text = "no node governed"
	}
	if n.InConflict > 0 {
		text += fmt.Sprintf(", %d in conflict", n.InConflict)
	}
	return text
}

// Sum adds up the nodes of all policies. A node in conflict counts once.
func (s Status) Sum() Nodes {
	var sum Nodes
	inConflict := map[string]bool{}
	for _, p := range s.Policies {
		sum.Selected += p.Nodes.Selected
		sum.Reporting += p.Nodes.Reporting
		sum.UpToDate += p.Nodes.UpToDate
		sum.Pending += p.Nodes.Pending
		sum.InProgress += p.Nodes.InProgress
		sum.Waiting += p.Nodes.Waiting
		sum.Failed += p.Nodes.Failed
		for _, c := range p.Plan.Conflicts {
			for _, name := range c.Nodes {
				inConflict[name] = true
			}
		}
	}
	sum.InConflict = len(inConflict)
	return sum
}

// Waiting is one reason with the nodes that wait for it.
type Waiting struct {
	Reason v1alpha1.Reason `json:"reason"`
	Nodes  []string        `json:"nodes"`
}

// Of returns the status of the named policies, or of all.
func Of(f fleet.Fleet, names ...string) Status {
	s := Status{At: f.Now, Policies: []Policy{}}
	for i := range f.Policies {
		if p := &f.Policies[i]; len(names) == 0 || slices.Contains(names, p.Name) {
			s.Policies = append(s.Policies, policyOf(f, p))
		}
	}
	if len(names) > 0 {
		s.Notices = s.ofCluster(f)
		return s
	}
	s.Silent = f.Silent()
	if len(f.Policies) == 0 {
		s.Proposal = proposal(f)
	}
	for _, d := range f.Ungoverned() {
		if d.Status == corev1.ConditionFalse {
			s.Ungoverned = append(s.Ungoverned, d.Node)
		}
	}
	s.Notices = s.ofCluster(f)
	return s
}

func policyOf(f fleet.Fleet, policy *v1alpha1.RebootPolicy) Policy {
	s := f.Snapshot(policy)
	p := plan.Of(s)
	most := f.Policy(p.LimitOf).Spec.MaxUnavailableOrDefault()
	status := Policy{
		Name: policy.Name, Mode: policy.Spec.ModeOrDefault(), MaxUnavailable: most.String(), Limit: p.Limit,
		Window: windowOf(policy, p.Window, s.Window), Unavailable: p.Holders,
		InProgress: reboots(f, policy, p), Agents: policy.Status.Nodes.Agents, Versions: p.Versions,
		Plan: p, Governed: f.Governed(policy.Name),
	}
	status.Waiting = waiting(p.Decisions, status.InProgress)
	for _, e := range p.Ledger.Granted {
		status.Due = append(status.Due, e.Node)
	}
	status.Nodes = count(&status)
	status.Nodes.Failed = int(p.Counts.Failed)
	status.Notices = notices(f, policy, p, &status)
	if status.HasWork() && !f.Manager.Down(f.Now) {
		ahead := forecast.Of(s, forecast.Quick)
		status.CompletionAt, status.Stays, status.MayFail = ahead.CompletionAt, ahead.Stays, len(ahead.Doubts(s))
		status.Guessed = !ahead.CompletionAt.IsZero() && ahead.Durations.Measured == 0
	}
	return status
}

// HasWork reports whether the policy has nodes to reboot. In mode DryRun it never has.
func (p Policy) HasWork() bool {
	return p.Mode != v1alpha1.ModeDryRun && p.Nodes.Pending+p.Nodes.InProgress > 0
}

// reboots returns the reboots in progress, first granted first.
func reboots(f fleet.Fleet, policy *v1alpha1.RebootPolicy, p plan.Plan) []fleet.Granted {
	var list []fleet.Granted
	for _, t := range p.Reboots {
		if t.Action != underway.ReleaseEntry {
			list = append(list, f.RebootOf(t))
		}
	}
	for _, e := range p.Ledger.Adopted {
		if t := plan.Explain(f.Snapshot(policy), e.Node).Reboot; t != nil {
			list = append(list, f.RebootOf(*t))
		}
	}
	return list
}

// waiting groups the waiting nodes by reason. It leaves out nodes whose hooks run, because they
// have a slot already.
func waiting(decisions []plan.Decision, inProgress []fleet.Granted) []Waiting {
	var list []Waiting
	for _, d := range decisions {
		if d.Status != corev1.ConditionFalse || slices.ContainsFunc(inProgress, func(t fleet.Granted) bool { return t.Node == d.Node }) {
			continue
		}
		i := slices.IndexFunc(list, func(w Waiting) bool { return w.Reason == d.Reason })
		if i < 0 {
			i, list = len(list), append(list, Waiting{Reason: d.Reason})
		}
		list[i].Nodes = append(list[i].Nodes, d.Node)
	}
	slices.SortFunc(list, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}

func count(p *Policy) Nodes {
	c := Nodes{Selected: len(p.Governed), InProgress: len(p.InProgress)}
	inProgress := map[string]bool{}
	for _, t := range p.InProgress {
		inProgress[t.Node] = true
	}
	for _, n := range p.Governed {
		if n.Reports() {
			c.Reporting++
		}
		if n.NeedsReboot() {
			c.Pending++
		}
		if n.Required == corev1.ConditionFalse && !inProgress[n.Name] && !fleet.Unheard(p.Agents, n) {
			c.UpToDate++
		}
	}
	for _, conflict := range p.Plan.Conflicts {
		c.InConflict += len(conflict.Nodes)
	}
	c.Waiting = len(p.Due)
	for _, w := range p.Waiting {
		c.Waiting += len(w.Nodes)
	}
	return c
}
