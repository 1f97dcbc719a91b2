package judge

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge/oracle"
)

// trackedEntry is a ledger entry and when it was first seen.
type trackedEntry struct {
	index int64
	at    time.Time
	boot  string
	// life is the UID of the policy whose ledger had the entry.
	life types.UID
	// taken means that an administrator removed the entry, with the status or the whole policy.
	taken bool
}

// releases checks entries that left a ledger, and records those that an administrator removed.
func (j *Judge) releases(r Change, p *policy, before []v1alpha1.LedgerEntry) {
	for _, e := range before {
		ok := p.last != nil && slices.ContainsFunc(p.last.Status.Grants, func(current v1alpha1.LedgerEntry) bool { return current.Node == e.Node && current.Seq == e.Seq })
		switch n := j.nodes[e.Node]; {
		case ok:
		case r.By == Admin:
			p.entries[key(e.Node, e.Seq)].taken = true
		case n != nil && n.last != nil && n.now.disrupts && n.now.seq == e.Seq && n.by == r.Name:
			j.report(Release, "policy %s releases %s in mid-attempt: %s", r.Name, key(e.Node, e.Seq), n.last.Annotations[v1alpha1.AnnotationProgress])
		}
	}
}

// grants checks new entries in a ledger. Those of the ledger's own policy were decided on its
// previous revision, because the write is a compare-and-swap. Those of a policy that shares the
// limit may be based on any recent revision of that policy.
func (j *Judge) grants(r Change, p *policy, before *v1alpha1.RebootPolicy) {
	own := before
	if own == nil {
		own = r.Policy
	}
	held, granted := map[string]bool{}, map[string]bool{}
	for _, e := range r.Policy.Status.Grants {
		who := key(e.Node, e.Seq)
		known := p.entries[who]
		isNew := known == nil || known.life != r.Policy.UID
		if isNew && !j.adopts(r, before, e) {
			granted[e.Node] = true
			from := []*v1alpha1.RebootPolicy{own}
			if e.Policy != "" {
				from = j.lately(r, e.Policy)
			}
			j.inTime(r, from, e)
			j.keepsDomain(r, p, from, e)
			j.governs(r, e)
		} else {
			held[e.Node] = true
		}
		if known == nil {
			p.entries[who] = &trackedEntry{index: j.index, at: r.At, boot: e.BootID, life: r.Policy.UID}
			continue
		}
		known.life, known.boot = r.Policy.UID, e.BootID
	}
	j.room(r, p, held, granted)
}

// keepsDomain checks that a new grant is in the same domain as the other grants of its policy.
func (j *Judge) keepsDomain(r Change, p *policy, from []*v1alpha1.RebootPolicy, e v1alpha1.LedgerEntry) {
	var stray string
	for _, granter := range from {
		if stray = j.stray(r, p, &granter.Spec, e); stray == "" {
			return
		}
	}
	if stray != "" && j.options.TrueClocks { // with wrong clocks a reboot may count as overdue early
		j.report(Domain, "policy %s grants %s while %s of another domain holds a grant", cmp.Or(e.Policy, r.Name), key(e.Node, e.Seq), stray)
	}
}

// stray returns a node of another domain whose grant from the same policy keeps that domain busy,
// or "" if none does.
func (j *Judge) stray(r Change, p *policy, spec *v1alpha1.RebootPolicySpec, e v1alpha1.LedgerEntry) string {
	topology, granted := spec.TopologyKey(), j.nodes[e.Node]
	if topology == "" || granted == nil || granted.last == nil {
		return ""
	}
	for _, other := range r.Policy.Status.Grants {
		n := j.nodes[other.Node]
		if n == nil || n.last == nil || other.Policy != e.Policy || other.NodeUID != "" && other.NodeUID != n.last.UID {
			continue
		}
		known := r.At.Sub(n.labelled) >= j.ago(stale) && r.At.Sub(granted.labelled) >= j.ago(stale)
		earlier := p.entries[key(other.Node, other.Seq)]
		overran := earlier != nil && r.At.Sub(earlier.at) >= soonestOverrun(spec)
		if known && !overran && n.last.Labels[topology] != granted.last.Labels[topology] {
			return other.Node
		}
	}
	return ""
}

// soonestOverrun returns the shortest time after a grant at which the reboot may count as lost and
// no longer keeps its domain busy. It is zero if hooks run after the boot, because they may refuse
// at any time.
func soonestOverrun(spec *v1alpha1.RebootPolicySpec) time.Duration {
	const clockOff, silence = 5 * time.Minute, 10 * time.Minute
	if hooks := spec.HooksOrDefault(); len(hooks.Of(v1alpha1.HooksAfter)) > 0 {
		return 0
	}
	drain := spec.DrainOrDefault()
	return max(min(drain.LeadTimeOrDefault()+drain.TimeoutOrDefault()+silence, spec.RebootOrDefault().TimeoutOrDefault())-clockOff, 0)
}

// governs checks that the granting policy governs the node, or did so recently.
func (j *Judge) governs(r Change, e v1alpha1.LedgerEntry) {
	by := cmp.Or(e.Policy, r.Name)
	if n := j.nodes[e.Node]; n != nil {
		until, formerly := n.formerly[by]
		if n.governor == by || formerly && r.At.Sub(until) <= j.ago(stale) {
			return
		}
	}
	j.report(Governs, "policy %s grants %s, which it does not govern", by, key(e.Node, e.Seq))
}

// room checks that the limit had room for new grants. Held entries use it up, and so do nodes that
// are down for other reasons, once a manager must know that. Granting a node that is already down
// takes no extra room.
func (j *Judge) room(r Change, p *policy, held, granted map[string]bool) {
	for name, n := range j.nodes {
		known := r.At.Sub(n.turned) >= j.ago(stale)
		if n.down && known && r.At.Sub(n.governed) >= j.ago(stale) && n.governor != "" && j.ledgerOf(n.governor) == r.Name {
			held[name] = true
		}
		if n.down || !known {
			delete(granted, name)
		}
	}
	before := slices.Sorted(maps.Keys(held))
	maps.Copy(held, granted)
	if most := highest(p.limits, j.index, r.At, j.ago(stale)); len(held) > max(most, len(before)) {
		j.report(Unavailable, "policy %s grants %v in addition to %v, but only %d may be unavailable", r.Name, slices.Sorted(maps.Keys(granted)), before, most)
	}
}

// adopts reports whether the node already shows the grant of a new entry, which means that the
// ledger had lost it.
func (j *Judge) adopts(r Change, before *v1alpha1.RebootPolicy, e v1alpha1.LedgerEntry) bool {
	if before != nil && e.Seq <= before.Status.Seq {
		return true
	}
	n := j.nodes[e.Node]
	if n == nil {
		return false
	}
	by := n.shows(e.Seq)
	if p := j.policies[by]; p != nil && p.last == nil {
		return true // the policy was removed by force
	}
	shown, carried := n.carried[r.Name+" "+key(e.Node, e.Seq)]
	return carried && (by == r.Name || r.At.Sub(shown) <= j.ago(Slack))
}

// lately returns the recent revisions of a policy from which it may have granted in the ledger of
// another policy.
func (j *Judge) lately(r Change, name string) []*v1alpha1.RebootPolicy {
	p := j.policies[name]
	if p == nil {
		return nil
	}
	var from []*v1alpha1.RebootPolicy
	for _, v := range p.before {
		if r.At.Sub(v.until) <= j.ago(Slack) {
			from = append(from, v.RebootPolicy)
		}
	}
	if p.last != nil {
		from = append(from, p.last)
	}
	return from
}

// inTime checks a new grant at the time in its entry, by the clock of the granting manager. At
// least one of the revisions on which it may be based must allow it.
func (j *Judge) inTime(r Change, from []*v1alpha1.RebootPolicy, e v1alpha1.LedgerEntry) {
	description := "by a policy that is not there"
	for _, p := range from {
		if description = j.forbids(r, p, e); description == "" {
			break
		}
	}
	if t := e.At.Time; description == "" && j.options.TrueClocks && (t.After(r.At) || r.At.Sub(t) > j.ago(Slack)) {
		description = "and wrote it at another time"
	}
	if description != "" {
		j.report(Window, "policy %s grants %s at %s, %s", cmp.Or(e.Policy, r.Name), key(e.Node, e.Seq), e.At.UTC().Format(time.RFC3339), description)
	}
}

// forbids returns the reason a policy does not allow a new grant, or "" if it does.
func (j *Judge) forbids(r Change, from *v1alpha1.RebootPolicy, e v1alpha1.LedgerEntry) string {
	t, spec := e.At.Time, &from.Spec
	switch {
	case from.DeletionTimestamp != nil:
		return "while it is being deleted"
	case spec.ModeOrDefault() == v1alpha1.ModeDryRun:
		return "in mode DryRun"
	case spec.Pause != nil && (spec.Pause.Until == nil || t.Before(spec.Pause.Until.Time)) && !ignores(spec, v1alpha1.UrgentIgnoresPause, t):
		return "in a pause"
	case !j.isOpen(r, spec, e):
		return "outside of its windows"
	case cmp.Or(spec.Shared(), from.Name) != r.Name:
		return "in the ledger of another limit"
	}
	return ""
}

// isOpen reports whether an entry was made inside a window and outside of blackouts, unless urgency
// lets its node ignore them.
func (j *Judge) isOpen(r Change, spec *v1alpha1.RebootPolicySpec, e v1alpha1.LedgerEntry) bool {
	t, windows, blackouts := e.At.Time, spec.Windows, spec.Blackouts
	if oracle.Open(windows, blackouts, t) {
		return true
	}
	if j.ignored(r, spec, e, v1alpha1.UrgentIgnoresWindows) {
		windows = nil
	}
	if j.ignored(r, spec, e, v1alpha1.UrgentIgnoresBlackouts) {
		blackouts = nil
	}
	return oracle.Open(windows, blackouts, t)
}

// ignores reports whether spec.urgent.all ignores something at a time.
func ignores(spec *v1alpha1.RebootPolicySpec, description v1alpha1.UrgentIgnore, t time.Time) bool {
	return spec.Urgent != nil && spec.Urgent.All != nil && t.Before(spec.Urgent.All.Until.Time) && slices.Contains(spec.Urgent.All.Ignore, description)
}

// ignored reports whether an entry may ignore windows or blackouts, because of spec.urgent.all, an
// urgent request or a passed deadline.
func (j *Judge) ignored(r Change, spec *v1alpha1.RebootPolicySpec, e v1alpha1.LedgerEntry, description v1alpha1.UrgentIgnore) bool {
	found := func(nodes *v1alpha1.UrgentNodes) bool {
		return nodes != nil && slices.Contains(nodes.Ignore, description)
	}
	return ignores(spec, description, e.At.Time) || spec.Urgent != nil &&
		(found(spec.Urgent.Requested) && j.isUrgent(r, e) || found(spec.Urgent.Overdue) && j.isOverdue(r, spec, e))
}

// isUrgent reports whether the node of an entry has an urgent request, or had one a moment ago.
func (j *Judge) isUrgent(r Change, e v1alpha1.LedgerEntry) bool {
	n := j.nodes[e.Node]
	return n != nil && (n.isUrgent() || !n.urgentUntil.IsZero() && r.At.Sub(n.urgentUntil) <= j.ago(Slack))
}

// isOverdue reports whether the node of an entry was past its deadline when the entry was made. The
// state of a moment ago counts too, because the manager may not have seen the change.
func (j *Judge) isOverdue(r Change, spec *v1alpha1.RebootPolicySpec, e v1alpha1.LedgerEntry) bool {
	n, d := j.nodes[e.Node], spec.Deadline
	if n == nil || d == nil {
		return false
	}
	passed := func(since time.Time) bool { return !since.IsZero() && !e.At.Time.Before(since.Add(d.Duration)) }
	return passed(n.needs.since) || passed(n.needs.before) && r.At.Sub(n.needs.changed) <= j.ago(Slack)
}

// lists reports whether the ledger has the entry of an attempt for exactly this Node.
func (p *policy) lists(name string, seq int64, n *corev1.Node) bool {
	return p.last != nil && slices.ContainsFunc(p.last.Status.Grants, func(e v1alpha1.LedgerEntry) bool {
		return e.Node == name && e.Seq == seq && e.NodeUID == n.UID
	})
}
