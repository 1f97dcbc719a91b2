package judge

import (
	"cmp"
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
	// limits are those of its ledger: of its nodes, and of those whose policies share its limit. own are those of its nodes while it
	// shares the limit of another policy.
	limits, own []limit
	// before are the revisions that another one has replaced, and when that was. A policy that shares a limit grants in the ledger of
	// another one, and its manager may not have seen its last change.
	before []revision
	// entries are all that its ledger has ever had, by attempt.
	entries map[string]*trackedEntry
	grants  semaphore
}

// revision is one of a policy, until when.
type revision struct {
	*v1alpha1.RebootPolicy
	until time.Time
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
	p.before = slices.DeleteFunc(p.before, func(v revision) bool { return r.At.Sub(v.until) > Slack })
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

// grants judges the entries that are new in a ledger. They were decided from the revision before: a compare-and-swap. Those of a
// policy that shares the limit were decided from any that this one had a moment ago.
func (j *Judge) grants(r Change, p *policy, before *v1alpha1.RebootPolicy) {
	own := before
	if own == nil {
		own = r.Policy
	}
	for _, e := range r.Policy.Status.Grants {
		who := key(e.Node, e.Seq)
		known := p.entries[who]
		isNew := known == nil || known.life != r.Policy.UID
		if isNew && !j.adopts(r, before, e) {
			from := []*v1alpha1.RebootPolicy{own}
			if e.Policy != "" {
				from = j.lately(r, e.Policy)
			}
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
func (j *Judge) adopts(r Change, before *v1alpha1.RebootPolicy, e v1alpha1.LedgerEntry) bool {
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

// lately are the revisions from which a policy may have granted in the ledger of another one.
func (j *Judge) lately(r Change, name string) []*v1alpha1.RebootPolicy {
	p := j.policies[name]
	if p == nil {
		return nil
	}
	var from []*v1alpha1.RebootPolicy
	for _, v := range p.before {
		if r.At.Sub(v.until) <= Slack {
			from = append(from, v.RebootPolicy)
		}
	}
	if p.last != nil {
		from = append(from, p.last)
	}
	return from
}

// inTime judges a new grant by the clock of the manager that gave it, which its entry shows. One of the revisions from which it may
// have been decided has to allow it.
func (j *Judge) inTime(r Change, from []*v1alpha1.RebootPolicy, e v1alpha1.LedgerEntry) {
	what := "by a policy that is not there"
	for _, p := range from {
		if what = j.forbids(r, p, e); what == "" {
			break
		}
	}
	if at := e.At.Time; what == "" && j.options.TrueClocks && (at.After(r.At) || r.At.Sub(at) > Slack) {
		what = "at another time than it says"
	}
	if what != "" {
		j.report(Window, "policy %s grants %s at %s, %s", cmp.Or(e.Policy, r.Name), key(e.Node, e.Seq), e.At.UTC().Format(time.RFC3339), what)
	}
}

// forbids is why a policy does not allow a new grant. Empty: it does.
func (j *Judge) forbids(r Change, from *v1alpha1.RebootPolicy, e v1alpha1.LedgerEntry) string {
	at, spec := e.At.Time, &from.Spec
	switch {
	case from.DeletionTimestamp != nil:
		return "while it is being deleted"
	case spec.ModeOrDefault() == v1alpha1.ModeDryRun:
		return "in mode DryRun"
	case spec.Pause != nil && (spec.Pause.Until == nil || at.Before(spec.Pause.Until.Time)) && !ignores(spec.Urgent, v1alpha1.UrgentIgnoresPause, at):
		return "in a pause"
	case !j.isOpen(r, spec, e):
		return "outside of its windows"
	case cmp.Or(spec.Shared(), from.Name) != r.Name:
		return "in the ledger of another limit than its own"
	}
	return ""
}

// isOpen reports whether an entry was made in a window and in no blackout, as far as those count for its node.
func (j *Judge) isOpen(r Change, spec *v1alpha1.RebootPolicySpec, e v1alpha1.LedgerEntry) bool {
	at, windows, blackouts := e.At.Time, spec.Windows, spec.Blackouts
	if oracle.Open(windows, blackouts, at) || j.isUrgent(r, spec, e) {
		return true
	}
	if ignores(spec.Urgent, v1alpha1.UrgentIgnoresWindows, at) || j.ignoresWindows(r, spec, e) {
		windows = nil
	}
	if ignores(spec.Urgent, v1alpha1.UrgentIgnoresBlackouts, at) {
		blackouts = nil
	}
	return oracle.Open(windows, blackouts, at)
}

// ignores reports whether something does not count under spec.urgent.
func ignores(u *v1alpha1.Urgent, what v1alpha1.UrgentIgnore, at time.Time) bool {
	return u != nil && at.Before(u.Until.Time) && slices.Contains(u.Ignore, what)
}

// isUrgent reports whether the node of an entry has an urgent request, or had one a moment ago, and the policy allows those.
func (j *Judge) isUrgent(r Change, spec *v1alpha1.RebootPolicySpec, e v1alpha1.LedgerEntry) bool {
	n := j.nodes[e.Node]
	allowed := spec.Requests != nil && spec.Requests.Urgent == v1alpha1.UrgentRequestsAllow
	return allowed && n != nil && (n.isUrgent() || !n.urgentUntil.IsZero() && r.At.Sub(n.urgentUntil) <= Slack)
}

// ignoresWindows reports whether the node of an entry was past its deadline when the entry was made, and the policy ignores windows
// then. What the node showed a moment ago counts, too: a manager may not have seen the change.
func (j *Judge) ignoresWindows(r Change, spec *v1alpha1.RebootPolicySpec, e v1alpha1.LedgerEntry) bool {
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

// ledgerOf is the policy in whose ledger a policy grants.
func (j *Judge) ledgerOf(name string) string {
	if p := j.policies[name]; p != nil && p.last != nil {
		return cmp.Or(p.last.Spec.Shared(), name)
	}
	return name
}

// relimit notes the limits of all policies, where they are others than before.
func (j *Judge) relimit() {
	governed := map[string]int{}
	for name := range j.policies {
		governed[name] += j.governed[name]
		if ledger := j.ledgerOf(name); ledger != name {
			governed[ledger] += j.governed[name]
		}
	}
	for name, p := range j.policies {
		is, own := limit{index: j.index, at: j.now.At}, limit{index: j.index, at: j.now.At, most: math.MaxInt}
		if p.last != nil {
			is.most, is.counted = allows(p.last.Spec.MaxUnavailableOrDefault(), governed[name])
			if limit := p.last.Spec.OwnLimit(); limit != nil {
				own.most, own.counted = allows(*limit, j.governed[name])
			}
		}
		p.own = appendChanged(p.own, own)
		before := len(p.limits)
		if p.limits = appendChanged(p.limits, is); len(p.limits) > before && j.options.Semaphore {
			p.grants.limit(is.most, j.index)
		}
	}
}

// appendChanged appends a limit that is another one than before.
func appendChanged(limits []limit, l limit) []limit {
	if n := len(limits); n > 0 && limits[n-1].most == l.most {
		return limits
	}
	return append(limits, l)
}

// allows is how many of so many nodes may be disrupted, and whether they were counted for that.
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

// highest is the highest of these limits that was in force since a record.
func highest(limits []limit, index int64, at time.Time) int {
	most := 0
	for i, l := range limits {
		if i+1 < len(limits) {
			next := limits[i+1]
			if over := next.index <= index; over && (!l.counted || next.at.Before(at.Add(-Slack))) {
				continue
			}
		}
		most = max(most, l.most)
	}
	return most
}
