package plan_test

import (
	"cmp"
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// TestMain makes the property tests draw the same cases in each run, unless flags change that, so
// that a failure can be reproduced without a file. With -short they draw 20 cases instead of 1000,
// because rapid itself then draws a fifth of its checks.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.seed": "1", "rapid.nofailfile": "true", "rapid.checks": "1000"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	if testing.Short() {
		if err := flag.Set("rapid.checks", "100"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// forAny checks a property of the plans of any situation, in a healthy fleet or in a cluster in any
// state.
func forAny(t *testing.T, property func(*rapid.T, situation, plan.Snapshot, plan.Plan)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		s, snapshot := drawAny(t)
		property(t, s, snapshot, plan.Of(snapshot))
	})
}

// drawAny draws a situation and its snapshot.
func drawAny(t *rapid.T) (situation, plan.Snapshot) {
	draw := drawSituation
	if oneIn(t, 2, "fleet") {
		draw = drawFleet
	}
	s := draw(t)
	snapshot := s.snapshot()
	snapshot.Refused = drawRefused(t, snapshot.Policy.Status.Grants)
	return s, snapshot
}

// governed returns the nodes that a policy governs, by name.
func governed(s plan.Snapshot) map[string]*record.Node {
	nodes := map[string]*record.Node{}
	for _, n := range s.Nodes {
		if s.Governor.Govern(n).Policy == s.Policy.Name {
			nodes[n.Name] = n
		}
	}
	return nodes
}

// counted returns the nodes that the limit counts, by name: those of all policies that share it.
func counted(s plan.Snapshot, p plan.Plan) map[string]*record.Node {
	nodes := governed(s)
	for _, n := range s.Nodes {
		if slices.Contains(p.Ledger.With, s.Governor.Govern(n).Policy) {
			nodes[n.Name] = n
		}
	}
	return nodes
}

// outstanding reports whether a node's record says that it is being rebooted. Progress that is dated
// in the future and has no grant is ignored. Nodes that drain are cordoned, and count for that.
func outstanding(s plan.Snapshot, n *record.Node) bool {
	return n.Outstanding() && (n.Progress == nil || n.GrantSeq() >= n.Progress.Seq || n.Progress.At.Sub(s.Now) <= time.Hour)
}

// TestReboots_NeverGrantsOverTheLimit checks that a plan never grants over the limit in any
// cluster, counting the nodes that are unavailable for other reasons. It grants nothing to a node
// that must not be rebooted (behaviours 15, 18, 20).
func TestReboots_NeverGrantsOverTheLimit(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		used := map[string]bool{}
		for _, e := range append(p.Ledger.Own()[:len(p.Ledger.Own())-len(p.Ledger.Granted)], p.Ledger.Others...) {
			used[e.Node] = true
		}
		nodes := governed(snapshot)
		for name, n := range counted(snapshot, p) {
			used[name] = used[name] || !n.Ready || n.Cordoned || n.Deleting || outstanding(snapshot, n)
		}
		down := 0
		for _, is := range used {
			if is {
				down++
			}
		}
		seq := max(snapshot.Policy.Status.Seq, snapshot.Ledger.Policy.Status.Seq)
		for _, e := range p.Ledger.Granted {
			n, ok := nodes[e.Node]
			if !ok || !n.NeedsReboot() || !n.Ready || n.Deleting || n.Paused(snapshot.Now) || n.BlockedBy != nil || n.Outstanding() || n.Seen() >= e.Seq ||
				e.BootID != n.BootID || e.BootID == "" {
				t.Fatalf("granted %+v to %+v\n%v", e, n, s)
			}
			if e.Seq <= seq {
				t.Fatalf("number %d after %d\n%v", e.Seq, seq, s)
			}
			if seq = e.Seq; !used[e.Node] {
				down++
			}
		}
		if len(p.Ledger.Granted) > 0 && (len(p.Ledger.Own()) > int(p.Limit) || len(p.Ledger.All()) > int(p.Ledger.Limit)) {
			t.Fatalf("%d entries of %d, limit %d of %d\n%v", len(p.Ledger.Own()), len(p.Ledger.All()), p.Limit, p.Ledger.Limit, s)
		}
		if slices.ContainsFunc(p.Ledger.Granted, func(e v1alpha1.LedgerEntry) bool { return !used[e.Node] }) && down > int(p.Ledger.Limit) {
			t.Fatalf("%d nodes down, limit %d\n%v", down, p.Ledger.Limit, s)
		}
		if limit := snapshot.Policy.Spec.Shared(); len(p.Ledger.Granted) > 0 && cmp.Or(limit, snapshot.Policy.Name) != snapshot.Ledger.Policy.Name {
			t.Fatalf("granted in the ledger of %s, and the limit of %s counts\n%v", snapshot.Ledger.Policy.Name, limit, s)
		}
	})
}

// TestReboots_AnswersForEachNode checks that each node that needs a reboot gets one answer from the
// policy that governs it: a decision, a grant, or a reboot under way.
func TestReboots_AnswersForEachNode(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		decisions := map[string]int{}
		for _, d := range p.Decisions {
			if decisions[d.Node]++; decisions[d.Node] > 1 {
				t.Fatalf("two decisions for %s\n%v", d.Node, s)
			}
		}
		entries := map[string]int{}
		for _, e := range append(p.Ledger.Own(), ledgerOf(p.Released())...) {
			if entries[e.Node]++; entries[e.Node] > 1 {
				t.Fatalf("two entries for %s\n%v", e.Node, s)
			}
		}
		for name, n := range governed(snapshot) {
			away := n.Outstanding() || inALedger(snapshot, name) // under another policy, or not adopted yet
			if n.NeedsReboot() && decisions[name]+entries[name] == 0 && !away {
				t.Fatalf("no answer for %s\n%v", name, s)
			}
		}
	})
}

// inALedger reports whether the policy's ledger, or the one that it shares, has an entry for the
// node from any policy.
func inALedger(s plan.Snapshot, node string) bool {
	return slices.ContainsFunc(slices.Concat(s.Policy.Status.Grants, s.Ledger.Policy.Status.Grants), func(e v1alpha1.LedgerEntry) bool { return e.Node == node })
}

func ledgerOf(reboots []underway.Reboot) []v1alpha1.LedgerEntry {
	var entries []v1alpha1.LedgerEntry
	for _, f := range reboots {
		entries = append(entries, f.Entry)
	}
	return entries
}

// TestReboots_KeepsAQuorum checks that at most one control-plane node is granted, and none while
// another is held or not Ready.
func TestReboots_KeepsAQuorum(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		for _, e := range p.Ledger.Granted {
			if !nodeNamed(snapshot, e.Node).ControlPlane {
				continue
			}
			for _, n := range snapshot.Nodes {
				held := slices.ContainsFunc(p.Ledger.Own(), func(e v1alpha1.LedgerEntry) bool { return e.Node == n.Name })
				if n.ControlPlane && n.Name != e.Node && (held || !n.Ready || outstanding(snapshot, n)) {
					t.Fatalf("granted %s while %s\n%v", e.Node, n.Name, s)
				}
			}
		}
	})
}

// TestReboots_OrderOfNodesDoesNotMatter shuffles nodes and policies, because informers list them in
// any order.
func TestReboots_OrderOfNodesDoesNotMatter(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		snapshot.Nodes = rapid.Permutation(snapshot.Nodes).Draw(t, "order")
		policies := rapid.Permutation(s.policies).Draw(t, "order of policies")
		snapshot.Governor = governor.Of(values(policies))
		if diff := gocmp.Diff(p, plan.Of(snapshot), planOptions...); diff != "" {
			t.Fatalf("(-one order +another):\n%s\n%v", diff, s)
		}
	})
}

// TestReboots_CountsEveryNodeItGoverns checks that nodes at rest count too, although a plan reports
// nothing else about them.
func TestReboots_CountsEveryNodeItGoverns(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		var want v1alpha1.NodeCounts
		for _, n := range governed(snapshot) {
			want.Selected++
			if n.Required == corev1.ConditionTrue || n.Required == corev1.ConditionFalse {
				want.Reporting++
			}
			if n.NeedsReboot() {
				want.RebootRequired++
			}
		}
		got := v1alpha1.NodeCounts{Selected: p.Counts.Selected, Reporting: p.Counts.Reporting, RebootRequired: p.Counts.RebootRequired}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("(-counted one by one +plan):\n%s\n%v", diff, s)
		}
	})
}

// showsHooks reports whether a node shows a phase of hooks, readable or not.
func showsHooks(n *record.Node) bool {
	_, phase := n.Annotations[v1alpha1.AnnotationHooks]
	return phase
}

// TestReboots_RemovesTheMarksOfAReboot checks that a node in service that needs no reboot gets
// a write exactly if it still carries a trace of one. Annotations for autoscalers may stay for a
// while, and then the plan has a time to look again.
func TestReboots_RemovesTheMarksOfAReboot(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		for name, n := range governed(snapshot) {
			if n.NeedsReboot() || n.Unavailable() || n.Outstanding() || inALedger(snapshot, name) || n.ControlPlane {
				continue
			}
			reported := slices.ContainsFunc(p.Decisions, func(d plan.Decision) bool { return d.Node == name }) ||
				slices.ContainsFunc(p.Markers, func(m record.Markers) bool { return m.Node == name })
			annotated, inGrace := n.Grant != nil && len(n.Grant.Annotations) > 0, false
			if annotated && !reported {
				longest := snapshot.Policy.Spec.AutoscalerGraceOrDefault() + time.Hour // an attempt takes less than that hour
				inGrace = !p.Next.IsZero() && !p.Next.After(n.Grant.At.Add(longest))
			}
			carries := n.Permitted != nil || n.Failed != nil || n.Planned != nil || n.Preflight != "" || n.Pending != "" || showsHooks(n) || annotated && !inGrace || n.Grant != nil && (n.Grant.Excluded || n.Grant.Unremediated) ||
				protocol.ParseMaxUptime(n.Annotations) != record.MaxUptime(&snapshot.Policy.Spec, name) ||
				n.Annotations[v1alpha1.AnnotationNodeConditions] != protocol.FormatNodeConditions(&snapshot.Policy.Spec)
			if decided(p, name).RebootFailed().Status != "" {
				t.Fatalf("node %s shows a failed reboot for ever\n%v", name, s)
			}
			if reported != carries {
				t.Fatalf("node %s: it carries something: %t, and something is reported of it: %t\n%v", name, carries, reported, s)
			}
		}
	})
}

// TestReboots_KeepsAutoscalersAwayForTheGrace checks that autoscalers may remove a node once its
// grace has passed, and not before.
func TestReboots_KeepsAutoscalersAwayForTheGrace(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		grace := snapshot.Policy.Spec.AutoscalerGraceOrDefault()
		for _, m := range p.Markers {
			g := nodeNamed(snapshot, m.Node).Grant
			if _, governs := governed(snapshot)[m.Node]; m.RemoveAnnotations && governs && g.State != protocol.GrantActive && snapshot.Now.Before(g.At.Add(grace)) {
				t.Fatalf("node %s loses its annotations %s after its grant ended\n%v", m.Node, snapshot.Now.Sub(g.At.Time), s)
			}
		}
	})
}

// TestReboots_KeepsPodsOffAFewNodes checks that new pods are kept off only nodes that wait for
// pods, and off no more of them than may be down.
func TestReboots_KeepsPodsOffAFewNodes(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		after := map[string]corev1.TaintEffect{}
		for name, n := range governed(snapshot) {
			after[name] = n.Pending
		}
		for _, m := range p.Markers {
			after[m.Node] = m.Pending
		}
		off := 0
		for name := range governed(snapshot) {
			if after[name] != corev1.TaintEffectNoSchedule {
				continue
			}
			if off++; decided(p, name).Reason != v1alpha1.ReasonBlockingPod {
				t.Fatalf("node %s lets no pods in\n%v", name, s)
			}
		}
		if off > int(p.Limit) {
			t.Fatalf("%d nodes let no pods in, and %d may be down\n%v", off, p.Limit, s)
		}
	})
}

// TestAgain_DecidesAsAWholePlanDoes checks that a decision about one reboot is the same alone as in
// the whole plan, and that nothing is decided about an entry that the ledger does not hold.
func TestAgain_DecidesAsAWholePlanDoes(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		for _, want := range p.Reboots {
			if diff := gocmp.Diff(want, p.Again(snapshot, nodeNamed(snapshot, want.Entry.Node), want.Entry), planOptions...); diff != "" {
				t.Fatalf("%s (-plan +alone):\n%s\n%v", want.Entry.Node, diff, s)
			}
			missing := want.Entry
			missing.Seq = p.Ledger.Seq + 1
			if f := p.Again(snapshot, nodeNamed(snapshot, missing.Node), missing); f.Action != "" {
				t.Fatalf("an entry that the ledger does not hold: %+v", f)
			}
		}
	})
}

// nodeNamed returns a node of the snapshot by name, or nil.
func nodeNamed(s plan.Snapshot, name string) *record.Node {
	if i := slices.IndexFunc(s.Nodes, func(n *record.Node) bool { return n.Name == name }); i >= 0 {
		return s.Nodes[i]
	}
	return nil
}

// TestReboots_WantsWhatTheProtocolPermits checks that the protocol permits every action of a plan.
// Otherwise it would be tried forever.
func TestReboots_WantsWhatTheProtocolPermits(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		for _, f := range p.Reboots {
			ok := true
			switch f.Action {
			case underway.PublishGrant:
				_, ok = protocol.Publish(f.Node.Record, f.Entry, "workers", evening)
			case underway.CancelGrant:
				_, ok = protocol.Cancel(f.Node.Record, f.Entry, "workers", f.Reason, "", evening)
			case underway.FinishGrant:
				_, ok = protocol.Finish(f.Node.Record, f.Entry, "workers", f.Node.BootID, evening)
			case underway.Wait, underway.BeginHooks, underway.NoteTaint:
			case underway.WithdrawGrant:
				_, ok = protocol.Withdraw(f.Node.Record, f.Entry, f.Entry.At.Time)
			case underway.ReleaseEntry:
				ok = f.Node == nil || protocol.Releasable(f.Node.Record, f.Entry) || protocol.Overtaken(f.Node.Record, f.Entry, "workers") || protocol.Withdrawn(f.Node.Record, f.Entry)
			}
			if !ok {
				t.Fatalf("%s of %+v\n%v", f.Action, f.Entry, s)
			}
		}
	})
}

// TestReboots_NextIsAhead checks that a plan waits only for future times, and that without such a
// time nothing in the plan ends by itself.
func TestReboots_NextIsAhead(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		if !p.Next.IsZero() && !p.Next.After(snapshot.Now) {
			t.Fatalf("next %v, now %v\n%v", p.Next, snapshot.Now, s)
		}
		for _, f := range p.Reboots {
			if f.Until.After(snapshot.Now) && (p.Next.IsZero() || p.Next.After(f.Until)) {
				t.Fatalf("next %v, and %s changes %v\n%v", p.Next, f.Entry.Node, f.Until, s)
			}
		}
	})
}

// TestReboots_NothingChangesBeforeNext checks that the plan stays the same until Next, or until
// something else changes if there is no Next. Only a few things may change with time: the times
// that new entries record, what follows from them if the grant on the Node is dated in the future,
// and entries dated in the future, which are written again. A halt lasts because its condition is
// written.
func TestReboots_NothingChangesBeforeNext(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, p plan.Plan) {
		holder := snapshot.Ledger.Policy.DeepCopy()
		for i, e := range holder.Status.Grants {
			at := slices.IndexFunc(p.Reboots, func(r underway.Reboot) bool { return r.Entry.Node == e.Node && r.Entry.Seq == e.Seq })
			if at >= 0 && snapshot.Ledger.Owns(e) {
				holder.Status.Grants[i].At = p.Reboots[at].Entry.At
			}
		}
		if !snapshot.Ledger.Apart() {
			snapshot.Policy = holder
		}
		snapshot.Ledger = snapshot.Ledger.Updated(holder)
		p = plan.Of(snapshot)
		ahead := rapid.SampledFrom([]time.Duration{time.Second, minute, 10 * minute, time.Hour, 24 * time.Hour}).Draw(t, "ahead")
		last := evening.Add(60 * 24 * time.Hour)
		if !p.Next.IsZero() {
			last = p.Next.Add(-1)
		}
		if w := snapshot.Window.Next; !w.IsZero() && !last.Before(w) {
			t.Fatalf("next %v, and the windows change %v\n%v", p.Next, w, s)
		}
		if p.Halt.Halted {
			snapshot.Policy = snapshot.Policy.DeepCopy()
			snapshot.Ledger = snapshot.Ledger.Updated(snapshot.Policy)
			snapshot.Policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionHalted, Status: metav1.ConditionTrue, Message: p.Halt.Message}}
		}
		grantedAt := gocmp.FilterPath(func(path gocmp.Path) bool {
			entered := slices.Contains([]string{"Ledger.Granted.At", "Ledger.Adopted.At", "Ledger.Kept.RebootingAt", "Reboots.Entry.RebootingAt", "Unlisted.Entry.At", "Unlisted.Entry.RebootingAt", "Unlisted.Until", "Unlisted.DrainUntil"}, path.String())
			return entered || strings.HasSuffix(path.String(), ".WithdrawnAt") || path.String() == "Next"
		}, gocmp.Ignore())
		for _, then := range []time.Time{timing.Earliest(evening.Add(ahead), last), last} {
			snapshot.Now = then
			again := plan.Of(snapshot)
			if diff := gocmp.Diff(p, again, append(planOptions, grantedAt)...); diff != "" {
				t.Fatalf("next %v, and by %v (-now +then):\n%s\n%v", p.Next, then, diff, s)
			}
			if !again.Next.IsZero() && !timing.Earliest(p.Next, again.Next).Equal(p.Next) {
				t.Fatalf("next %v, and by %v it is before that, %v\n%v", p.Next, then, again.Next, s)
			}
		}
	})
}

// TestReboots_ComesToAnEnd checks that plans, applied in the order of the real manager, end with
// nothing left to do, and that the API server's rules for the ledger hold on the way.
func TestReboots_ComesToAnEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t)
		c := newCluster(t, sequence{policies: s.policies, hosts: s.hosts}, nil)
		c.found = math.MaxInt // an initial state that breaks rules may lead to further violations
		for _, p := range s.policies {
			passes := 1
			for ; !c.pass(p.Name); passes++ {
				if passes == 3 {
					c.broken("three passes were not enough for policy %s\n%v", p.Name, s)
				}
			}
		}
	})
}

// TestChecks_ChangeNothing checks that checks change neither the fleet, the slots nor the nodes.
func TestChecks_ChangeNothing(t *testing.T) {
	forAny(t, func(t *rapid.T, s situation, snapshot plan.Snapshot, _ plan.Plan) {
		if before, after := plan.AroundChecks(snapshot); before != after || strings.Contains(before, "PANIC=") {
			t.Fatalf("a check changed what it looks at (-before +after):\n%s\n%v", gocmp.Diff(before, after), s)
		}
	})
}
