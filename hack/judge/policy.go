package judge

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// policy tracks one policy.
type policy struct {
	last    *v1alpha1.RebootPolicy
	selects labels.Selector
	// limits holds the limits of its ledger, over its own nodes and those of policies that share
	// its limit. own holds the limits of only its nodes while it shares another policy's limit.
	limits, own []limit
	// before holds the replaced revisions and the times of their replacement. A policy that shares
	// a limit grants in another ledger, so its manager may not have seen its last change.
	before []revision
	// entries holds every entry that its ledger has ever had, by attempt.
	entries map[string]*trackedEntry
	grants  semaphore
}

// revision is a revision of a policy and the time at which it was replaced.
type revision struct {
	*v1alpha1.RebootPolicy
	until time.Time
}

// limit is the number of nodes that a policy lets be disrupted from some record on.
type limit struct {
	index int64
	at    time.Time
	most  int
	// counted means that the limit is a percentage, so a manager may have used an older count of
	// nodes.
	counted bool
}

func (j *Judge) takePolicy(r Change) {
	p := j.policies[r.Name]
	if p == nil {
		p = &policy{entries: map[string]*trackedEntry{}}
		j.policies[r.Name] = p
	}
	before := p.last
	if p.last = r.Policy; r.Gone {
		p.last = nil
	}
	p.before = slices.DeleteFunc(p.before, func(v revision) bool { return r.At.Sub(v.until) > j.ago(Slack) })
	if before != nil {
		p.before = append(p.before, revision{before, r.At})
	}
	if before == nil || r.Gone || !before.DeletionTimestamp.Equal(r.Policy.DeletionTimestamp) || !equality.Semantic.DeepEqual(before.Spec, r.Policy.Spec) {
		p.selects = selection(p.last)
		for _, n := range j.nodes {
			j.govern(n)
		}
		j.relimit()
	}
	if p.last != nil {
		j.grants(r, p, before)
	}
	if before != nil {
		j.releases(r, p, before.Status.Grants)
	}
	if j.options.Semaphore {
		p.grants.ledger(p.last, j.index)
	}
}

// govern updates the counts of nodes after the policy that governs a node may have changed.
func (j *Judge) govern(n *node) {
	before := n.governor
	j.governed[before]--
	n.governor = ""
	if n.last != nil {
		n.governor = j.governorOf(n.last)
	}
	if j.governed[n.governor]++; n.governor != before {
		n.formerly[before], n.governed = j.now.At, j.now.At
	}
}

// governorOf returns the policy with the highest priority that selects a node, or "" if none or
// several do.
func (j *Judge) governorOf(n *corev1.Node) string {
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

// selection returns the selector of a policy. It selects everything if the policy has none, and
// nothing if the policy is missing or being deleted.
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

// ledgerOf returns the policy in whose ledger a policy grants.
func (j *Judge) ledgerOf(name string) string {
	if p := j.policies[name]; p != nil && p.last != nil {
		return cmp.Or(p.last.Spec.Shared(), name)
	}
	return name
}

// relimit records the limits of all policies if they have changed.
func (j *Judge) relimit() {
	governed := map[string]int{}
	for name := range j.policies {
		governed[name] += j.governed[name]
		if ledger := j.ledgerOf(name); ledger != name {
			governed[ledger] += j.governed[name]
		}
	}
	for name, p := range j.policies {
		current, own := limit{index: j.index, at: j.now.At}, limit{index: j.index, at: j.now.At, most: math.MaxInt}
		if p.last != nil {
			current.most, current.counted = allows(p.last.Spec.MaxUnavailableOrDefault(), governed[name])
			if limit := p.last.Spec.OwnLimit(); limit != nil {
				own.most, own.counted = allows(*limit, j.governed[name])
			}
		}
		p.own = appendChanged(p.own, own)
		before := len(p.limits)
		if p.limits = appendChanged(p.limits, current); len(p.limits) > before && j.options.Semaphore {
			p.grants.limit(current.most, j.index)
		}
	}
}

// appendChanged appends a limit if it differs from the last one.
func appendChanged(limits []limit, l limit) []limit {
	if n := len(limits); n > 0 && limits[n-1].most == l.most {
		return limits
	}
	return append(limits, l)
}

// allows returns the number of nodes that may be disrupted, and whether it depends on the number of
// selected nodes.
func allows(allowed intstr.IntOrString, selected int) (most int, counted bool) {
	if allowed.Type == intstr.Int {
		return allowed.IntValue(), false
	}
	percent, err := intstr.GetScaledValueFromIntOrPercent(&allowed, 100, false)
	if err != nil || percent == 0 || selected == 0 {
		return 0, true
	}
	return max(1, selected*percent/100), true
}

// highest returns the highest limit in force since a record. For percentages it looks back a while
// further.
func highest(limits []limit, index int64, t time.Time, ago time.Duration) int {
	most := 0
	for i, l := range limits {
		if i+1 < len(limits) {
			next := limits[i+1]
			if over := next.index <= index; over && (!l.counted || !next.at.After(t.Add(-ago))) {
				continue
			}
		}
		most = max(most, l.most)
	}
	return most
}
