package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// maxNames is the number of names that a status lists for one reason, and the number in a message.
const maxNames = 5

// count computes the numbers for status and metrics.
func (c *choice) count() {
	p, counts := &c.plan, &c.plan.Counts
	*counts = v1alpha1.NodeCounts{
		Selected: int32(len(c.selected)), Reporting: int32(c.agents.reporting), Granted: int32(len(p.Ledger())), Unavailable: int32(len(c.slots.used)),
	}
	if p.Deadlines != nil {
		counts.Overdue = p.Deadlines.Passed
	}
	failed := map[string]bool{}
	for _, n := range c.governed {
		if n.NeedsReboot() {
			counts.RebootRequired++
		}
		if n.NeedsReboot() && (n.HasFailed() && !n.FailedTry() || n.HookRefused()) {
			failed[n.Name] = true
		}
		if c.waiting[n.Name] != nil {
			p.OldestPending = timing.Earliest(p.OldestPending, n.WaitsSince())
		}
	}
	for _, t := range p.Reboots {
		if t.Rebooting() && t.Action != ReleaseEntry {
			counts.Rebooting++
		}
		if !t.FailedAt.IsZero() {
			failed[t.Entry.Node] = true
		}
	}
	counts.Failed = int32(len(failed))
	blocked := blockedBy(p.Decisions)
	for _, b := range blocked {
		counts.Blocked += b.Count
	}
	p.Blocked = blocked[:min(len(blocked), maxBlocked)]
}

// maxBlocked is the number of reasons in a status. There are fewer unless agents report unknown
// reasons.
const maxBlocked = 32

func blockedBy(decisions []Decision) []v1alpha1.BlockedNodes {
	at := map[v1alpha1.Reason]int{}
	var blocked []v1alpha1.BlockedNodes
	for _, d := range decisions {
		if d.Status != corev1.ConditionFalse {
			continue
		}
		i, ok := at[d.Reason]
		if !ok {
			i = len(blocked)
			at[d.Reason], blocked = i, append(blocked, v1alpha1.BlockedNodes{Reason: d.Reason})
		}
		blocked[i].Count++
		if len(blocked[i].Nodes) < maxNames {
			blocked[i].Nodes = append(blocked[i].Nodes, d.Node)
		}
	}
	slices.SortFunc(blocked, func(a, b v1alpha1.BlockedNodes) int {
		return cmp.Or(compareBools(needNoAction[a.Reason], needNoAction[b.Reason]), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return blocked
}

// needNoAction are the reasons that need no action, because they end by themselves or a person has
// asked for them. They come last in the status, because `kubectl get` shows only the first reason.
var needNoAction = map[v1alpha1.Reason]bool{
	v1alpha1.ReasonNodePaused: true, v1alpha1.ReasonPaused: true, v1alpha1.ReasonBlackout: true, v1alpha1.ReasonWindowClosed: true,
	v1alpha1.ReasonWindowTooShort: true, v1alpha1.ReasonJustBooted: true, v1alpha1.ReasonBackingOff: true, v1alpha1.ReasonRingWaits: true,
	v1alpha1.ReasonBlockingPod: true, v1alpha1.ReasonWaitingForHook: true,
	v1alpha1.ReasonControlPlaneGuard: true, v1alpha1.ReasonDomainBusy: true, v1alpha1.ReasonBudgetExhausted: true, v1alpha1.ReasonSpacing: true, v1alpha1.ReasonDryRun: true,
}

// next returns the next time at which the plan changes by itself.
func (c *choice) next() time.Time {
	var next time.Time
	consider := func(instants ...time.Time) {
		for _, t := range instants {
			if t.After(c.Now) {
				next = timing.Earliest(next, t)
			}
		}
	}
	consider(c.Window.Next, c.agents.missedAt, c.run.until, c.believedFrom, record.Comes(resumedAt(c.Policy)))
	if deadlines := c.plan.Deadlines; deadlines != nil {
		consider(deadlines.Next)
	}
	if closes := c.Window.ClosesAt; !closes.IsZero() {
		consider(closes.Add(1 - c.reserve)) // the first instant at which the window is too short
	}
	if pause := c.Policy.Spec.Pause; pause != nil && pause.Until != nil {
		consider(pause.Until.Time)
	}
	if last := c.Policy.Status.LastRebootAt; last != nil {
		consider(record.Comes(last.Time))
	}
	for _, past := range c.Policy.Status.History {
		consider(record.Comes(past.EndedAt.Time))
	}
	for _, t := range c.plan.UnderWay() {
		consider(t.Until, t.hookPatienceEnds())
	}
	for _, u := range c.plan.Unavailable {
		consider(u.Since.Add(UnavailablePatience))
	}
	for _, o := range c.waiting {
		consider(o.Until, o.looksFrom(), o.stallsAt)
	}
	for _, n := range c.governed {
		consider(n.CredibleFrom(c.Now))
		if !c.held(n) {
			consider(c.annotationsUntil(n))
		}
	}
	for _, n := range c.byName {
		consider(n.CredibleFrom(c.Now))
	}
	return next
}

const (
	// maxSystems is the number of operating systems in a status, and maxVersions the number of
	// versions of each besides the newest.
	maxSystems  = 8
	maxVersions = 5
)

// system is an operating system and its update channel. Versions are compared only within one.
type system struct{ os, group string }

// running is the system and version of a node, from its agent's labels.
type running struct {
	system

	version string
}

// versionCount counts nodes by what they run.
type versionCount struct {
	counts map[running]*v1alpha1.VersionNodes
	// last holds the system and version of the previous node, and of points to its entry in counts.
	// Most nodes run the same.
	last running
	of   *v1alpha1.VersionNodes
}

// versionsOf returns the wanted status.versions for these nodes.
func versionsOf(nodes []*record.Node) []v1alpha1.SystemVersions {
	var c versionCount
	for _, n := range nodes {
		c.add(n)
	}
	return c.report()
}

// add counts a node. It leaves out nodes whose agent has not reported a version or whose system has
// none.
func (c *versionCount) add(n *record.Node) {
	is := running{system{n.OS, n.OSGroup}, n.OSVersion}
	if is.os == "" || is.version == "" {
		return
	}
	if c.of == nil || is != c.last {
		if c.counts == nil {
			c.counts = map[running]*v1alpha1.VersionNodes{}
		}
		if c.counts[is] == nil {
			c.counts[is] = &v1alpha1.VersionNodes{Version: is.version}
		}
		c.last, c.of = is, c.counts[is]
	}
	c.of.Nodes++
	if !n.NeedsReboot() {
		c.of.WithoutNeed++
	}
}

// report lists the systems with the most nodes first.
func (c *versionCount) report() []v1alpha1.SystemVersions {
	bySystem := map[system][]v1alpha1.VersionNodes{}
	for is, count := range c.counts {
		bySystem[is.system] = append(bySystem[is.system], *count)
	}
	if len(bySystem) == 0 {
		return nil
	}
	all := make([]v1alpha1.SystemVersions, 0, len(bySystem))
	for is, versions := range bySystem {
		all = append(all, systemVersions(is, versions))
	}
	slices.SortFunc(all, func(a, b v1alpha1.SystemVersions) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.OS, b.OS), cmp.Compare(a.Group, b.Group))
	})
	return all[:min(len(all), maxSystems)]
}

// systemVersions sorts the versions of one system: those that compare first, the newest in front.
func systemVersions(is system, versions []v1alpha1.VersionNodes) v1alpha1.SystemVersions {
	slices.SortFunc(versions, func(a, b v1alpha1.VersionNodes) int { return compareVersions(b.Version, a.Version) })
	s := v1alpha1.SystemVersions{OS: is.os, Group: is.group}
	for _, v := range versions {
		s.Nodes += v.Nodes
	}
	if newest := versions[0]; isNumbers(newest.Version) {
		s.Newest, s.OnNewest = newest.Version, newest.Nodes
		versions = versions[1:]
	}
	for more := len(versions) - maxVersions; more > 0; more-- {
		i := leastUseful(versions)
		versions = slices.Delete(versions, i, i+1)
	}
	s.Others = append(s.Others, versions...)
	return s
}

// leastUseful returns the index of the version to leave out if there are too many: the oldest whose
// nodes all need a reboot, or else the newest. So the versions of nodes that have not asked for a
// reboot stay, and among those the oldest.
func leastUseful(versions []v1alpha1.VersionNodes) int {
	for i, v := range slices.Backward(versions) {
		if v.WithoutNeed == 0 {
			return i
		}
	}
	return 0
}

// compareVersions compares two versions number by number. If one is a prefix of the other, the
// longer one is newer. Versions that are not numbers between dots come before all others, in
// alphabetical order.
func compareVersions(a, b string) int {
	if isNumbers(a) != isNumbers(b) || !isNumbers(a) {
		return cmp.Or(compareBools(isNumbers(a), isNumbers(b)), cmp.Compare(a, b))
	}
	byNumber := slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(a, b string) int {
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0") // a number may have more digits than any integer
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return cmp.Or(byNumber, cmp.Compare(a, b))
}

// isNumbers reports whether a version is numbers between dots, such as 4593.1.0.
func isNumbers(version string) bool {
	for number := range strings.SplitSeq(version, ".") {
		if number == "" || strings.Trim(number, "0123456789") != "" {
			return false
		}
	}
	return true
}

// silentNodes returns the nodes that should have reported by now whether they need a reboot, by
// name.
func silentNodes(f *fleet) []string {
	var names []string
	for _, n := range f.selected {
		if n.Reports() || n.Windows || !n.Ready || n.Deleting || f.held(n) || f.Now.Sub(n.ReadySince) < agentGrace {
			continue
		}
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return names
}

// contested returns a node of the conflicts, if possible one that needs a reboot.
func contested(f *fleet) string {
	first := ""
	for _, name := range slices.Sorted(maps.Keys(f.conflicts)) {
		if f.byName[name].NeedsReboot() {
			return name
		}
		first = cmp.Or(first, name)
	}
	return first
}
