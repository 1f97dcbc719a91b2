package forecast_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/forecast"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/queue"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// TestMain makes the property tests generate the same cases in each run.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.seed": "1", "rapid.nofailfile": "true", "rapid.checks": "1000"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	os.Exit(m.Run())
}

func oneIn(t *rapid.T, n int, label string) bool { return rapid.IntRange(0, n-1).Draw(t, label) == n-1 }

func minutes(t *rapid.T, from, to int, label string) time.Duration {
	return time.Duration(rapid.IntRange(from, to).Draw(t, label)) * minute
}

// drawSnapshot generates a policy and its nodes in different states.
func drawSnapshot(t *rapid.T) plan.Snapshot {
	p := policy(atMost(rapid.SampledFrom([]string{"1", "2", "4", "30%"}).Draw(t, "maxUnavailable")))
	if oneIn(t, 3, "zones") {
		zones(p)
	}
	if oneIn(t, 3, "rings") {
		rings(p)
	}
	if oneIn(t, 3, "deadline") {
		ignore := []v1alpha1.UrgentIgnore{v1alpha1.UrgentIgnoresWindows, v1alpha1.UrgentIgnoresBlackouts}[:rapid.IntRange(0, 2).Draw(t, "ignore")]
		deadline(minutes(t, 0, 2000, "after"), ignore...)(p)
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "windows") {
		p.Spec.Windows = append(p.Spec.Windows, v1alpha1.Window{
			Name: fmt.Sprint("w", i), Start: fmt.Sprintf("%02d:00", rapid.IntRange(0, 23).Draw(t, "hour")),
			Duration: v1alpha1.Duration{Duration: minutes(t, 5, 600, "open")}, TimeZone: "Europe/Berlin",
		})
	}
	if oneIn(t, 4, "blackout") {
		p.Spec.Blackouts = []v1alpha1.Blackout{{Name: "freeze", From: "2026-11-24", To: "2026-11-26"}}
	}
	for range rapid.IntRange(0, 3).Draw(t, "history") {
		n := func(label string) int { return rapid.IntRange(0, 1200).Draw(t, label) }
		p.Status.History = append(p.Status.History, took(n("before"), n("drain"), n("reboot"), n("settle")))
	}
	nodes := pool(rapid.IntRange(0, 25).Draw(t, "nodes"))
	seq := int64(0)
	for i := range nodes {
		for _, o := range []struct {
			in     int
			label  string
			option func(*record.Node)
		}{
			{2, "zone a", labelled("zone", "a")},
			{2, "zone b", labelled("zone", "b")},
			{3, "ring canary", labelled("ring", "canary")},
			{3, "ring later", labelled("ring", "later")},
			{6, "control plane", controlPlane},
			{8, "paused", paused},
			{12, "not Ready", notReady},
			{12, "cordoned", cordoned},
			{4, "content", content},
			{3, "has waited long", since(minutes(t, 0, 1500, "since"))},
		} {
			if oneIn(t, o.in, o.label) {
				o.option(nodes[i])
			}
		}
		if oneIn(t, 8, "in progress") {
			seq++
			ago, began := minutes(t, 20, 50, "granted"), minutes(t, 0, 19, "began")
			holds(nodes[i].Name, seq, ago)(p)
			granted("workers", seq, protocol.GrantActive, ago)(nodes[i])
			progressed(seq, rapid.SampledFrom([]protocol.Phase{protocol.PhaseDraining, protocol.PhaseRebooting, protocol.PhaseAborted}).Draw(t, "phase"), began, 1)(nodes[i])
		}
	}
	return snapshotOf(p, nodes)
}

// For any fleet, reboots start only in a window with enough time left, and within the limit. A node
// goes only once, domains go one at a time, and each node that needs a reboot goes or stays.
func TestOf_KeepsThePolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		effort := rapid.SampledFrom([]forecast.Effort{20, 100, forecast.Thorough}).Draw(t, "effort")
		f := forecast.Of(s, effort)
		limit := int(plan.Of(s).Limit)
		reported, begun := map[string]bool{}, map[string]int{}
		for i, r := range f.Reboots {
			if reported[r.Node] {
				t.Fatalf("%s goes twice", r.Node)
			}
			reported[r.Node] = true
			if r.EndsAt.Before(r.SettlesAt) || r.SettlesAt.Before(r.RebootsAt) || r.RebootsAt.Before(r.DrainsAt) || r.EndsAt.Before(f.At) {
				t.Fatalf("its phases are out of order: %+v", r)
			}
			if r.InProgress {
				continue
			}
			if w := s.Schedule.At(r.StartsAt); !w.Open && !passes(s, r, w) || r.StartsAt.Before(f.At) {
				t.Fatalf("%s starts at %v: %+v", r.Node, r.StartsAt, w)
			}
			down := 1
			for _, other := range f.Reboots[:i] {
				if other.EndsAt.After(r.StartsAt) {
					down++
				}
			}
			if begun[r.Node] = down; down > limit && !over(s, limit) {
				t.Fatalf("%d down when %s starts, limit %d: %+v", down, r.Node, limit, f.Reboots)
			}
		}
		checkRings(t, s, f)
		for _, stay := range f.Stays {
			if reported[stay.Node] {
				t.Fatalf("%s is reported twice", stay.Node)
			}
			reported[stay.Node] = true
		}
		for _, n := range s.Nodes {
			if n.NeedsReboot() && !reported[n.Name] {
				t.Fatalf("nothing is reported of %s: %+v", n.Name, f)
			}
		}
	})
}

// passes reports whether a reboot may start although no window is open, because its node is past
// its deadline and then ignores windows.
func passes(s plan.Snapshot, r forecast.Expected, w window.State) bool {
	i := slices.IndexFunc(s.Nodes, func(n *record.Node) bool { return n.Name == r.Node })
	d, overdue := s.Policy.Spec.Deadline, s.Policy.Spec.UrgentOrDefault().Overdue
	return overdue.Ignores(v1alpha1.UrgentIgnoresWindows) && (!w.Blackout || overdue.Ignores(v1alpha1.UrgentIgnoresBlackouts)) &&
		!r.StartsAt.Before(s.Nodes[i].RequiredSince.Add(d.Duration))
}

// Exactly the nodes that are not back before their deadline miss it.
func TestOf_ReportsWhoMissesTheDeadline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		f := forecast.Of(s, forecast.Thorough)
		var want []string
		for _, n := range s.Nodes {
			if s.Policy.Spec.Deadline == nil || !n.NeedsReboot() {
				continue
			}
			due := n.RequiredSince.Add(s.Policy.Spec.Deadline.Duration)
			if !slices.ContainsFunc(f.Reboots, func(r forecast.Expected) bool { return r.Node == n.Name && !r.EndsAt.After(due) }) {
				want = append(want, n.Name)
			}
		}
		if diff := cmp.Diff(want, f.MissesDeadline); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// checkRings checks that a reboot starts only after all reboots of earlier rings have ended and
// soaked, and only if none of their nodes stays.
func checkRings(t *rapid.T, s plan.Snapshot, f forecast.Forecast) {
	rings, err := queue.RingsOf(s.Policy, s.Now)
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]*record.Node{}
	for _, n := range s.Nodes {
		nodes[n.Name] = n
	}
	for _, r := range f.Reboots {
		ring := rings.Of(nodes[r.Node])
		for _, other := range f.Reboots {
			earlier := rings.Of(nodes[other.Node])
			if !r.InProgress && earlier < ring && !nodes[other.Node].Paused(s.Now) && r.StartsAt.Before(other.EndsAt.Add(rings.Soak(earlier))) {
				t.Fatalf("%+v starts while %+v of an earlier ring is not done", r, other)
			}
		}
		for _, stay := range f.Stays {
			if n := nodes[stay.Node]; !r.InProgress && rings.Of(n) < ring && !n.Paused(s.Now) {
				t.Fatalf("%+v starts although %+v of an earlier ring stays", r, stay)
			}
		}
	}
}

// over reports whether more reboots are current from the start than the limit allows.
func over(s plan.Snapshot, limit int) bool { return len(s.Policy.Status.Grants) > limit }

// The same snapshot always has the same forecast, and the forecast does not change it.
func TestOf_IsAFunction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		nodes, policy := slices.Clone(s.Nodes), s.Policy.DeepCopy()
		first := forecast.Of(s, forecast.Quick)
		if diff := cmp.Diff(first, forecast.Of(s, forecast.Quick)); diff != "" {
			t.Fatalf("(-first +then):\n%s", diff)
		}
		if diff := cmp.Diff([]any{nodes, policy}, []any{s.Nodes, s.Policy}, cmp.AllowUnexported(record.Node{})); diff != "" {
			t.Fatalf("the snapshot has changed:\n%s", diff)
		}
	})
}
