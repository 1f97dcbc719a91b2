package verdict

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Slack is how old a decision may be when it takes effect: the time-out of a manager's pass, and a request that came late.
const Slack = time.Minute + 30*time.Second

// longestShutdown is how long a host may take to go down once its agent is past the point of no return: the agent may be stopped.
const longestShutdown = 15 * time.Minute

// requests is how often a node may be rebooted while one request stands: once for it, and once for what came before.
const requests = 2

// Judge takes a history in, record by record.
type Judge struct {
	nodes    map[string]*node
	policies map[string]*policy
	// governed is how many nodes each policy governs; disrupted are those that are, by policy.
	governed  map[string]int
	disrupted map[string]map[string]*node
	found     []Violation
}

// node is what is known of one node.
type node struct {
	last *corev1.Node
	// governor is the policy that selects it. Empty: none, or several.
	governor string
	// cordoned: the cordon that stands is an administrator's.
	cordoned bool
	// staged: an update waits. asked counts the reboots while an administrator's request stands.
	staged bool
	asked  int
	// doomed is until when the host may go down after its Node was deleted: it was past the point of no return.
	doomed time.Time
	// by is the policy under which the node is disrupted, since when. Empty: it is not.
	by    string
	since time.Time
}

// policy is what is known of one policy.
type policy struct {
	last    *v1alpha1.RebootPolicy
	selects labels.Selector
	// limits are what the limit was, and from when on.
	limits []limit
	// given are the boots that entries of the ledger were for.
	given map[int64]string
	// taken are the entries that an administrator took away with the status.
	taken map[int64]bool
}

type limit struct {
	from time.Time
	most int
}

// NewJudge makes a judge who has seen nothing.
func NewJudge() *Judge {
	return &Judge{nodes: map[string]*node{}, policies: map[string]*policy{}, governed: map[string]int{}, disrupted: map[string]map[string]*node{}}
}

// Violations are what was found so far.
func (j *Judge) Violations() []Violation { return j.found }

// Take takes one record in.
func (j *Judge) Take(r Record) {
	switch {
	case r.Policy != nil:
		j.policy(r)
	case r.Node != nil:
		j.node(r)
	case r.Host != "":
		j.host(r)
	}
}

func (j *Judge) accuse(at time.Time, rule Rule, format string, args ...any) {
	j.found = append(j.found, Violation{At: at, Rule: rule, How: fmt.Sprintf(format, args...)})
}

func (j *Judge) of(name string) *node {
	if j.nodes[name] == nil {
		j.nodes[name] = &node{}
	}
	return j.nodes[name]
}

func (j *Judge) node(r Record) {
	n := j.of(r.Name)
	before := n.last
	if n.last = r.Node; r.Gone {
		if progress, err := v1alpha1.ParseProgress(r.Node.Annotations); err == nil && progress != nil && progress.Phase == v1alpha1.PhaseRebooting && n.by != "" {
			n.doomed = r.At.Add(longestShutdown)
		}
		n.last, n.cordoned, n.asked = nil, false, 0
		j.disturb(r.Name, n, "", r.At)
		j.govern(n)
		j.relimit(r.At)
		return
	}
	if before == nil || !sameLabels(before, r.Node) {
		j.govern(n)
		j.relimit(r.At)
	}
	j.cordon(r, n, before)
	if _, requested := r.Node.Annotations[v1alpha1.AnnotationRebootRequested]; !requested {
		n.asked = 0
	}
	j.disruption(r, n)
}

// cordon follows whose the cordon is that stands.
func (j *Judge) cordon(r Record, n *node, before *corev1.Node) {
	was := before != nil && before.Spec.Unschedulable
	switch is := r.Node.Spec.Unschedulable; {
	case is == was:
	case r.By == Admin:
		n.cordoned = is
	case is:
		n.cordoned = false
	case n.cordoned:
		j.accuse(r.At, Ownership, "%s uncordons node %s, which an administrator has cordoned", r.By, r.Name)
		n.cordoned = false
	}
}

// disruption follows who is disrupted, and counts when one more is.
func (j *Judge) disruption(r Record, n *node) {
	by, disrupted := disruptedBy(r.Node)
	switch {
	case !disrupted:
		j.disturb(r.Name, n, "", r.At)
	case n.by == "":
		j.disturb(r.Name, n, by, r.At)
		j.count(r.At, by)
		j.fence(r)
		j.listed(r)
	}
}

// disturb notes for which policy a node is disrupted from now on. Empty: it is not any more.
func (j *Judge) disturb(name string, n *node, by string, at time.Time) {
	delete(j.disrupted[n.by], name)
	n.by, n.since = by, at
	if by == "" {
		return
	}
	if j.disrupted[by] == nil {
		j.disrupted[by] = map[string]*node{}
	}
	j.disrupted[by][name] = n
}

// disruptedBy tells whether the operator disturbs a node's workload, and for which policy.
func disruptedBy(n *corev1.Node) (policy string, disrupted bool) {
	progress, err := v1alpha1.ParseProgress(n.Annotations)
	if err != nil || progress == nil || progress.Phase == v1alpha1.PhaseAborted {
		return "", false
	}
	grant, err := v1alpha1.ParseGrant(n.Annotations)
	if err != nil || grant == nil {
		return "", true
	}
	over := grant.Seq > progress.Seq || grant.Seq == progress.Seq && grant.State == v1alpha1.GrantFinished
	return grant.Policy, progress.Phase == v1alpha1.PhaseDraining || !over
}

// fence compares the boot that a grant was given to with the one that uses it.
func (j *Judge) fence(r Record) {
	grant, err := v1alpha1.ParseGrant(r.Node.Annotations)
	if err != nil || grant == nil || j.policies[grant.Policy] == nil {
		return
	}
	boot := r.Node.Status.NodeInfo.BootID
	if to, known := j.policies[grant.Policy].given[grant.Seq]; known && to != boot {
		j.accuse(r.At, Fence, "node %s, in boot %s, is disrupted under grant %d, which was given to boot %s", r.Name, boot, grant.Seq, to)
	}
}

// listed looks for the entry in the ledger under which a node begins, which is for this very Node.
func (j *Judge) listed(r Record) {
	grant, err := v1alpha1.ParseGrant(r.Node.Annotations)
	if err != nil || grant == nil || j.policies[grant.Policy] == nil || j.policies[grant.Policy].last == nil {
		return // others have said so
	}
	p := j.policies[grant.Policy]
	entries := p.last.Status.Grants
	if !p.taken[grant.Seq] && !slices.ContainsFunc(entries, func(e v1alpha1.LedgerEntry) bool {
		return e.Node == r.Name && e.Seq == grant.Seq && (e.NodeUID == "" || e.NodeUID == r.Node.UID)
	}) {
		j.accuse(r.At, Ledger, "node %s begins grant %d of policy %s, whose ledger has %v", r.Name, grant.Seq, grant.Policy, entries)
	}
}

// count compares the disrupted nodes of a policy with the highest limit that any of their grants can have been given under.
func (j *Judge) count(at time.Time, by string) {
	p := j.policies[by]
	if p == nil || p.last == nil {
		j.accuse(at, Limit, "nodes are disrupted for policy %q, which is not there", by)
		return
	}
	var names []string
	oldest := at
	for name, n := range j.disrupted[by] {
		names = append(names, name)
		if n.since.Before(oldest) {
			oldest = n.since
		}
	}
	if most := p.highest(oldest.Add(-longestGrant), at); len(names) > most {
		slices.Sort(names)
		j.accuse(at, Limit, "policy %s disrupts %v and may disrupt %d", by, names, most)
	}
}

// host follows what waits for a reboot, and what was rebooted.
func (j *Judge) host(r Record) {
	n := j.of(r.Name)
	switch r.Host {
	case Staged:
		n.staged = true
	case Lost, Scrapped:
		n.staged, n.doomed = false, time.Time{}
	case Rebooted:
		if !r.At.Before(n.doomed) {
			j.rebooted(r, n)
		}
		n.staged, n.doomed = false, time.Time{}
	}
}

func (j *Judge) rebooted(r Record, n *node) {
	requested := false
	if n.last != nil {
		_, requested = n.last.Annotations[v1alpha1.AnnotationRebootRequested]
	}
	if requested {
		n.asked++
	}
	switch {
	case n.asked > requests:
		j.accuse(r.At, Need, "node %s is rebooted for the %d. time for one request", r.Name, n.asked)
	case !n.staged && !requested:
		j.accuse(r.At, Need, "node %s is rebooted and needs no reboot", r.Name)
	case n.by == "":
		j.accuse(r.At, Need, "node %s is rebooted without a grant", r.Name)
	}
}

// End is how things are when everything should have been done. Left says what is not, in words.
func (j *Judge) End(at time.Time, left []string) {
	for _, what := range left {
		j.accuse(at, Convergence, "%s", what)
	}
	for _, name := range sortedNames(j.nodes) {
		n := j.nodes[name]
		if n.last == nil {
			continue
		}
		if cordoned := n.last.Spec.Unschedulable; cordoned && !n.cordoned {
			j.accuse(at, Cordon, "node %s is left cordoned", name)
		}
		if _, requested := n.last.Annotations[v1alpha1.AnnotationRebootRequested]; n.staged || requested {
			j.accuse(at, Need, "node %s still needs its reboot", name)
		}
	}
}
