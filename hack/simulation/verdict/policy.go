package verdict

import (
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// longestGrant is how long after its grant a node may begin: an agent that was away for long finds it still standing.
const longestGrant = 24 * time.Hour

func (j *Judge) policy(r Record) {
	p := j.policies[r.Name]
	if p == nil {
		p = &policy{given: map[int64]string{}, taken: map[int64]bool{}}
		j.policies[r.Name] = p
	}
	before := p.last
	if p.last = r.Policy; r.Gone {
		p.last = nil
	}
	if before == nil || r.Gone || !before.DeletionTimestamp.Equal(r.Policy.DeletionTimestamp) || !equality.Semantic.DeepEqual(before.Spec, r.Policy.Spec) {
		p.selects = selection(p.last)
		for _, n := range j.nodes {
			j.govern(n)
		}
		j.relimit(r.At)
	}
	if before != nil && !r.Gone {
		j.grants(r, before)
	}
	if before != nil && r.By == Admin {
		for _, e := range before.Status.Grants {
			p.taken[e.Seq] = p.taken[e.Seq] || !slices.Contains(r.Policy.Status.Grants, e)
		}
	}
	for _, e := range r.Policy.Status.Grants {
		p.given[e.Seq] = e.BootID
	}
}

// govern counts a node for the policy that governs it by now, and no longer for the one before.
func (j *Judge) govern(n *node) {
	j.governed[n.governor]--
	n.governor = ""
	if n.last != nil {
		n.governor = j.governs(n.last)
	}
	j.governed[n.governor]++
}

// grants judges the entries that are new in a ledger. They were decided from the revision before: a compare-and-swap.
func (j *Judge) grants(r Record, before *v1alpha1.RebootPolicy) {
	given := slices.DeleteFunc(slices.Clone(r.Policy.Status.Grants), func(e v1alpha1.LedgerEntry) bool {
		return e.Seq <= before.Status.Seq || j.shows(r.Name, e)
	})
	if len(given) == 0 {
		return
	}
	if before.DeletionTimestamp != nil {
		j.accuse(r.At, Window, "policy %s grants node %s, and is being deleted", r.Name, given[0].Node)
	}
	if !mayGrant(&before.Spec, r.At.Add(-Slack), r.At) {
		j.accuse(r.At, Window, "policy %s grants node %s", r.Name, given[0].Node)
	}
}

// shows tells whether a node carries the grant of an entry already: then the ledger has lost it, and takes it back.
func (j *Judge) shows(policy string, e v1alpha1.LedgerEntry) bool {
	n := j.nodes[e.Node]
	if n == nil || n.last == nil {
		return false
	}
	grant, err := v1alpha1.ParseGrant(n.last.Annotations)
	return err == nil && grant != nil && grant.Policy == policy && grant.Seq == e.Seq
}

// relimit notes the limits of all policies, where they are others than before.
func (j *Judge) relimit(at time.Time) {
	for name, p := range j.policies {
		most := 0
		if p.last != nil {
			most = allows(&p.last.Spec, j.governed[name])
		}
		if len(p.limits) == 0 || p.limits[len(p.limits)-1].most != most {
			p.limits = append(p.limits, limit{at, most})
		}
	}
}

// governs is the policy with the highest priority that selects a node. Empty: none, or several.
func (j *Judge) governs(n *corev1.Node) string {
	var names []string
	highest := int32(math.MinInt32)
	for name, p := range j.policies {
		if p.last == nil || !p.selects.Matches(labels.Set(n.Labels)) || p.last.Spec.Priority < highest {
			continue
		}
		if p.last.Spec.Priority > highest {
			names, highest = nil, p.last.Spec.Priority
		}
		names = append(names, name)
	}
	if len(names) != 1 {
		return ""
	}
	return names[0]
}

// selection is what a policy selects: everything where it does not say, nothing where it is not there or being deleted.
func selection(p *v1alpha1.RebootPolicy) labels.Selector {
	if p == nil || p.DeletionTimestamp != nil {
		return labels.Nothing()
	}
	s, err := p.Spec.NodeSelector.Selector()
	if err != nil {
		return labels.Nothing()
	}
	return s
}

// allows is how many nodes may be disrupted of so many.
func allows(spec *v1alpha1.RebootPolicySpec, selected int) int {
	allowed := spec.MaxUnavailableOrDefault()
	if allowed.Type == intstr.Int {
		return allowed.IntValue()
	}
	percent, err := intstr.GetScaledValueFromIntOrPercent(&allowed, 100, false)
	if err != nil || percent == 0 || selected == 0 {
		return 0
	}
	return max(1, selected*percent/100)
}

// highest is the highest limit between two instants.
func (p *policy) highest(from, to time.Time) int {
	most := 0
	for i, l := range p.limits {
		over := i+1 < len(p.limits) && p.limits[i+1].from.Before(from)
		if !over && !l.from.After(to) {
			most = max(most, l.most)
		}
	}
	return most
}

func sameLabels(a, b *corev1.Node) bool { return maps.Equal(a.Labels, b.Labels) }

func sortedNames(nodes map[string]*node) []string { return slices.Sorted(maps.Keys(nodes)) }
