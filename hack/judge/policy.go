package judge

import (
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge/oracle"
)

// policy is what is known of one policy.
type policy struct {
	last    *v1alpha1.RebootPolicy
	selects labels.Selector
	limits  []limit
	// entries are all that its ledger has ever had, by attempt.
	entries map[string]*trackedEntry
	grants  semaphore
}

// limit is how many nodes a policy lets be disrupted, and from when on.
type limit struct {
	index int64
	at    time.Time
	most  int
	// counted: it is a percentage, and a manager may have counted nodes as they were a while ago.
	counted bool
}

// trackedEntry is one of a ledger, since it was seen first.
type trackedEntry struct {
	index int64
	at    time.Time
	boot  string
	// life is the UID of the policy in whose ledger it was.
	life types.UID
	// taken: an administrator took it away with the status or with the whole policy.
	taken bool
}

func (j *Judge) takePolicy(r Record) {
	p := j.policies[r.Name]
	if p == nil {
		p = &policy{entries: map[string]*trackedEntry{}}
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
		j.relimit()
	}
	if p.last != nil {
		j.grants(r, p, before)
	}
	if before != nil && r.By == Admin {
		p.lost(before.Status.Grants)
	}
	if j.options.Semaphore {
		p.grants.ledger(p.last, j.index)
	}
}

// lost notes which entries an administrator has taken away.
func (p *policy) lost(before []v1alpha1.LedgerEntry) {
	for _, e := range before {
		if p.last == nil || !slices.ContainsFunc(p.last.Status.Grants, func(is v1alpha1.LedgerEntry) bool { return is.Node == e.Node && is.Seq == e.Seq }) {
			p.entries[key(e.Node, e.Seq)].taken = true
		}
	}
}

// grants judges the entries that are new in a ledger. They were decided from the revision before: a compare-and-swap.
func (j *Judge) grants(r Record, p *policy, before *v1alpha1.RebootPolicy) {
	from := before
	if from == nil {
		from = r.Policy
	}
	for _, e := range r.Policy.Status.Grants {
		who := key(e.Node, e.Seq)
		known := p.entries[who]
		isNew := known == nil || known.life != r.Policy.UID
		if isNew && !j.adopts(r, before, e) {
			j.inTime(r, from, e)
		}
		if known == nil {
			p.entries[who] = &trackedEntry{index: j.index, at: r.At, boot: e.BootID, life: r.Policy.UID}
			continue
		}
		known.life, known.boot = r.Policy.UID, e.BootID
	}
}

// adopts reports whether an entry is that of a grant which the node shows already: then the ledger had lost it.
func (j *Judge) adopts(r Record, before *v1alpha1.RebootPolicy, e v1alpha1.LedgerEntry) bool {
	if before != nil && e.Seq <= before.Status.Seq {
		return true
	}
	n := j.nodes[e.Node]
	if n == nil {
		return false
	}
	shown, carried := n.carried[r.Name+" "+key(e.Node, e.Seq)]
	return carried && (n.shows(r.Name, e.Seq) || r.At.Sub(shown) <= Slack)
}

func (n *node) shows(policy string, seq int64) bool {
	if n.last == nil {
		return false
	}
	grant, err := v1alpha1.ParseGrant(n.last.Annotations)
	return err == nil && grant != nil && grant.Policy == policy && grant.Seq == seq
}

// inTime judges a new grant by the clock of the manager that gave it, which its entry shows.
func (j *Judge) inTime(r Record, from *v1alpha1.RebootPolicy, e v1alpha1.LedgerEntry) {
	at, spec := e.At.Time, &from.Spec
	what := ""
	switch {
	case from.DeletionTimestamp != nil:
		what = "while it is being deleted"
	case spec.ModeOrDefault() == v1alpha1.ModeDryRun:
		what = "in mode DryRun"
	case spec.Pause != nil && (spec.Pause.Until == nil || at.Before(spec.Pause.Until.Time)):
		what = "in a pause"
	case !oracle.Open(spec.Windows, spec.Blackouts, at) && (!j.ignoresWindows(r, spec, e) || !oracle.Open(nil, spec.Blackouts, at)):
		what = "outside of its windows"
	case j.options.TrueClocks && (at.After(r.At) || r.At.Sub(at) > Slack):
		what = "at another time than it says"
	default:
		return
	}
	j.report(Window, "policy %s grants %s at %s, %s", r.Name, key(e.Node, e.Seq), at.UTC().Format(time.RFC3339), what)
}

// ignoresWindows reports whether the node of an entry was past its deadline when the entry was made, and the policy ignores windows
// then. What the node showed a moment ago counts, too: a manager may not have seen the change.
func (j *Judge) ignoresWindows(r Record, spec *v1alpha1.RebootPolicySpec, e v1alpha1.LedgerEntry) bool {
	n, d := j.nodes[e.Node], spec.Deadline
	if n == nil || d == nil || d.Action != v1alpha1.DeadlineIgnoresWindows {
		return false
	}
	passed := func(since time.Time) bool { return !since.IsZero() && !e.At.Time.Before(since.Add(d.After.Duration)) }
	return passed(n.needs.since) || passed(n.needs.before) && r.At.Sub(n.needs.changed) <= Slack
}

// lists reports whether the ledger has the entry of an attempt, for this very Node.
func (p *policy) lists(name string, seq int64, n *corev1.Node) bool {
	return p.last != nil && slices.ContainsFunc(p.last.Status.Grants, func(e v1alpha1.LedgerEntry) bool {
		return e.Node == name && e.Seq == seq && e.NodeUID == n.UID
	})
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

// selection is what a policy selects: everything where it names none, nothing where it is not there or being deleted.
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

// relimit notes the limits of all policies, where they are others than before.
func (j *Judge) relimit() {
	for name, p := range j.policies {
		l := limit{index: j.index, at: j.now.At}
		if p.last != nil {
			l.most, l.counted = allows(&p.last.Spec, j.governed[name])
		}
		if n := len(p.limits); n == 0 || p.limits[n-1].most != l.most {
			p.limits = append(p.limits, l)
			if j.options.Semaphore {
				p.grants.limit(l.most, j.index)
			}
		}
	}
}

// allows is how many of so many nodes may be disrupted, and whether they were counted for that.
func allows(spec *v1alpha1.RebootPolicySpec, selected int) (most int, counted bool) {
	allowed := spec.MaxUnavailableOrDefault()
	if allowed.Type == intstr.Int {
		return allowed.IntValue(), false
	}
	percent, err := intstr.GetScaledValueFromIntOrPercent(&allowed, 100, false)
	if err != nil || percent == 0 || selected == 0 {
		return 0, true
	}
	return max(1, selected*percent/100), true
}

// highest is the highest limit that was in force since a record.
func (p *policy) highest(index int64, at time.Time) int {
	most := 0
	for i, l := range p.limits {
		if i+1 < len(p.limits) {
			next := p.limits[i+1]
			if over := next.index <= index; over && (!l.counted || next.at.Before(at.Add(-Slack))) {
				continue
			}
		}
		most = max(most, l.most)
	}
	return most
}
