package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/forecast"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// trip is one reboot as it happened.
type trip struct {
	node         string
	starts, ends time.Time
}

// trips plays to the end and returns the reboots of one policy, in the order in which they started.
func trips(c *cluster, name string) []trip {
	var trips []trip
	at := map[string]int{}
	look := func() {
		held := map[string]bool{}
		for _, e := range c.policies[name].Status.Grants {
			held[e.Node] = true
			if _, known := at[e.Node]; !known {
				at[e.Node], trips = len(trips), append(trips, trip{node: e.Node, starts: e.At.Time})
			}
		}
		for node, i := range at {
			if !held[node] && trips[i].ends.IsZero() {
				trips[i].ends = c.now
			}
		}
	}
	look()
	c.play(look)
	return trips
}

// foreseen is a story with a forecast.
type foreseen struct {
	sequence
	// after is the time in the story at which the forecast is made.
	after time.Duration
	// tolerance is the time by which a node may be early or late.
	tolerance time.Duration
}

// TestForecast compares forecasts with what the simulated fleet did: the same nodes, in the same
// order, at the same time.
func TestForecast(t *testing.T) {
	for name, story := range foreseenStories() {
		t.Run(name, func(t *testing.T) {
			f, was := story.play(t)
			golden(t, "forecast-"+name, "# "+story.about+"\n\n"+compared(f, was))
			story.check(t, f, was)
		})
	}
}

// play makes the forecast at its time, and plays on.
func (s *foreseen) play(t tester) (forecast.Forecast, []trip) {
	s.learn(t)
	c := newCluster(t, s.sequence, nil)
	for !c.now.Equal(evening.Add(s.after)) {
		c.round()
		next := c.next()
		if c.now = evening.Add(s.after); !next.IsZero() && next.Before(c.now) {
			c.now = next
		}
	}
	f := forecast.Of(c.snapshot("workers"), forecast.Thorough)
	c.end = later(f.CompletionAt, c.now).Add(26 * time.Hour)
	return f, trips(c, "workers")
}

// TestForecast_OfAnyFleet draws fleets, windows and the time of the forecast. Because every node
// takes as long as those before it, only the order of slots that become free in the same second is
// random.
func TestForecast_OfAnyFleet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		story := drawForeseen(t)
		f, was := story.play(t)
		if got, want := compact(f.Reboots), was; !cmp.Equal(got, want, cmp.AllowUnexported(trip{})) {
			t.Fatalf("(-foreseen +was):\n%s\n%s\n%s", cmp.Diff(got, want, cmp.AllowUnexported(trip{})), story.about, compared(f, was))
		}
	})
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func compact(reboots []forecast.Expected) []trip {
	var trips []trip
	for _, r := range reboots {
		trips = append(trips, trip{node: r.Node, starts: r.StartsAt, ends: r.EndsAt})
	}
	return trips
}

func drawForeseen(t *rapid.T) *foreseen {
	p := policy("workers", atMost(rapid.SampledFrom([]string{"1", "2", "3", "25%", "50%"}).Draw(t, "maxUnavailable")))
	if oneIn(t, 3, "by pool") {
		p.Spec.Concurrency.TopologyKey = "pool"
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "windows") {
		p.Spec.Windows = append(p.Spec.Windows, v1alpha1.Window{
			Name: fmt.Sprint("w", i), Start: fmt.Sprintf("%02d:%02d", rapid.IntRange(0, 23).Draw(t, "hour"), 7*rapid.IntRange(0, 8).Draw(t, "minute")),
			Duration: v1alpha1.Duration{Duration: minutes(t, 6, 50, "open")},
		})
	}
	if oneIn(t, 3, "deadline") {
		deadline(minutes(t, 100, 400, "after its need"))(p)
		if oneIn(t, 2, "ignores windows") {
			ignoresWindows(p)
		}
	}
	s := &foreseen{after: minutes(t, 0, 90, "after"), sequence: sequence{policies: []*v1alpha1.RebootPolicy{p}}}
	reboots := minutes(t, 1, 9, "reboot")
	for i := range rapid.IntRange(1, 14).Draw(t, "nodes") {
		h := needy(fmt.Sprintf("n%02d", i), needsSince(time.Duration(rapid.IntRange(1, 3).Draw(t, "since"))*time.Hour))
		h.reboots = reboots
		for _, o := range []struct {
			in     int
			label  string
			option func(*host)
		}{
			{3, "pool x", label("pool", "x")},
			{3, "pool y", label("pool", "y")},
			{5, "control plane", label(record.ControlPlaneLabels[0], "")},
			{8, "paused", func(h *host) { pause(h, h.node) }},
			{12, "not Ready", notReady},
			{12, "cordoned", cordoned},
			{8, "up to date", func(h *host) { conditionOf(h.node, v1alpha1.NodeRebootRequired).Status = corev1.ConditionFalse }},
		} {
			if oneIn(t, o.in, o.label) {
				o.option(h)
				s.about += h.name + " " + o.label + "\n"
			}
		}
		s.hosts = append(s.hosts, h)
	}
	return s
}

// learn gives the policy the history of a fleet like this one.
func (s *foreseen) learn(t tester) {
	t.Helper()
	other := needy("other", drains(s.hosts[0].drains))
	other.reboots = s.hosts[0].reboots
	c := play(t, sequence{policies: []*v1alpha1.RebootPolicy{policy("workers")}, hosts: []*host{other}}, nil)
	if s.policies[0].Status.History = c.policies["workers"].Status.History; len(s.policies[0].Status.History) == 0 {
		t.Fatalf("the fleet like this one has no history")
	}
}

func (s *foreseen) check(t *testing.T, f forecast.Forecast, was []trip) {
	t.Helper()
	late := func(foreseen, was time.Time) bool { return was.Sub(foreseen).Abs() > s.tolerance }
	if len(f.Reboots) != len(was) {
		t.Fatalf("%d reboots were foreseen, and %d were made", len(f.Reboots), len(was))
	}
	for i, r := range f.Reboots {
		if r.Node != was[i].node {
			t.Errorf("%s was foreseen as number %d, and it was %s", r.Node, i+1, was[i].node)
		}
		if late(r.StartsAt, was[i].starts) || late(r.EndsAt, was[i].ends) {
			t.Errorf("%s was foreseen from %s to %s, and was from %s to %s", r.Node, stamp(r.StartsAt), stamp(r.EndsAt), stamp(was[i].starts), stamp(was[i].ends))
		}
	}
	if len(was) == 0 {
		return
	}
	if last := slices.MaxFunc(was, func(a, b trip) int { return a.ends.Compare(b.ends) }).ends; late(f.CompletionAt, last) {
		t.Errorf("all was to be done %s, and it was %s", stamp(f.CompletionAt), stamp(last))
	}
}

// compared prints a forecast next to what happened.
func compared(f forecast.Forecast, was []trip) string {
	var b strings.Builder
	inside := map[bool]string{true: "inside the window", false: "not inside the window"}[f.FinishesInWindow]
	if f.Window == nil {
		inside = "always open"
	}
	fmt.Fprintf(&b, "Foreseen %s: done %s, %s\n\n", date(f.At), date(f.CompletionAt), inside)
	line := func(cells ...any) { fmt.Fprintf(&b, "%-10s %-24s %-9s %-24s %-9s %s\n", cells...) }
	line("NODE", "STARTS", "LATE BY", "ENDS", "LATE BY", "WINDOW")
	for i, r := range f.Reboots {
		then := trip{}
		if i < len(was) {
			then = was[i]
		}
		note := r.Window
		if r.InProgress {
			note = "in progress"
		}
		line(r.Node, date(r.StartsAt), then.starts.Sub(r.StartsAt), date(r.EndsAt), then.ends.Sub(r.EndsAt), note)
	}
	for _, stay := range f.Stays {
		fmt.Fprintf(&b, "%-10s stays: %s, %s\n", stay.Node, stay.Reason, stay.Message)
	}
	if f.Unknown != "" {
		fmt.Fprintln(&b, "unknown: "+f.Unknown)
	}
	return b.String()
}

func date(t time.Time) string { return t.Format("Mon 2006-01-02 15:04:05") }

func foreseenStories() map[string]*foreseen {
	berlin := func(name, start string, duration time.Duration, days ...v1alpha1.Day) func(*v1alpha1.RebootPolicy) {
		return func(p *v1alpha1.RebootPolicy) {
			p.Spec.Windows = append(p.Spec.Windows, v1alpha1.Window{
				Name: name, Days: days, Start: start, Duration: v1alpha1.Duration{Duration: duration}, TimeZone: "Europe/Berlin",
			})
		}
	}
	blackedOut := func(from, to string) func(*v1alpha1.RebootPolicy) {
		return func(p *v1alpha1.RebootPolicy) {
			p.Spec.Blackouts = append(p.Spec.Blackouts, v1alpha1.Blackout{Name: "freeze", From: from, To: to, TimeZone: "Europe/Berlin"})
		}
	}
	numbered := func(n int, options ...func(*host)) []*host {
		var list []*host
		for i := range n {
			list = append(list, needy(fmt.Sprintf("worker-%02d", i+1), options...))
		}
		return list
	}
	withPaused := func(list []*host, names ...string) []*host {
		for _, h := range list {
			if slices.Contains(names, h.name) {
				pause(h, h.node)
			}
		}
		return list
	}
	workers := func(options ...func(*v1alpha1.RebootPolicy)) []*v1alpha1.RebootPolicy {
		return []*v1alpha1.RebootPolicy{policy("workers", options...)}
	}
	zoned := slices.Concat(
		hosts(needy, "worker-01 worker-04 worker-06", label("zone", "b")), hosts(needy, "worker-02 worker-03 worker-05", label("zone", "a")),
		[]*host{newHost("worker-07", label("zone", "c"), notReady), needy("worker-08", needsSince(5*time.Hour))},
	)
	reboots := func(d time.Duration) func(*host) { return func(h *host) { h.reboots = d } }
	return map[string]*foreseen{
		"one-at-a-time": {sequence: sequence{
			about: "Five nodes take turns, and the one that has waited longest goes first.", policies: workers(),
			hosts: append(numbered(5), needy("worker-06", needsSince(5*time.Hour)), newHost("worker-07")),
		}},
		"in-progress": {after: 20 * minute, sequence: sequence{
			about: "The forecast is made while two nodes are under way.", policies: workers(atMost("2")), hosts: numbered(9),
		}, tolerance: 10 * time.Second},
		"nights": {sequence: sequence{
			about:    "Each window of an hour is enough for some nodes, and a freeze lies between the windows.",
			policies: workers(berlin("nights", "01:00", time.Hour), blackedOut("2026-06-03", "2026-06-06")), hosts: numbered(25),
		}},
		"clock-change": {sequence: sequence{
			about:    "The night in which 02:30 comes twice, after a long freeze.",
			policies: workers(berlin("early", "02:30", time.Hour), blackedOut("2026-06-01", "2026-10-24")), hosts: numbered(22),
		}},
		"clock-change-across": {sequence: sequence{
			about:    "A window across the hour that comes twice, two at a time.",
			policies: workers(atMost("2"), berlin("nights", "01:00", 3*time.Hour), blackedOut("2026-06-01", "2026-10-25")), hosts: numbered(70),
		}},
		"zones": {sequence: sequence{
			about: "Zone by zone, two at a time; a node that is not Ready uses one of three.", policies: workers(atMost("3"), domains("zone")), hosts: zoned,
		}},
		"control-planes": {sequence: sequence{
			about: "Control-plane nodes go one at a time, after equal workers.", policies: workers(atMost("4")),
			hosts: append(numbered(6), hosts(needy, "cp-1 cp-2 cp-3", label("node-role.kubernetes.io/control-plane", ""))...),
		}},
		"percent": {sequence: sequence{
			about: "A quarter of eleven nodes is two.", policies: workers(atMost("25%")), hosts: append(numbered(7), hosts(newHost, "a b c d")...),
		}},
		"paused-node": {sequence: sequence{
			about: "Two nodes are paused by hand and stay. The others go.", policies: workers(berlin("nights", "01:00", time.Hour)),
			hosts: withPaused(numbered(6), "worker-01", "worker-04"),
		}},
		"paused-until": {sequence: sequence{
			about: "The policy is paused until midnight.", policies: workers(paused(new(metav1.NewTime(evening.Add(2*time.Hour))), "")), hosts: numbered(3),
		}},
		"slow-reboots": {sequence: sequence{
			about:    "Reboots of twenty-five minutes: the window ends before the last node that begins in it has settled.",
			policies: workers(atMost("2"), berlin("nights", "01:00", 105*minute), settles(10*minute)), hosts: numbered(11, reboots(25*minute)),
		}},
		"mixed": {tolerance: 12 * minute, sequence: sequence{
			about:    "Some drains take longer and some shorter than those that the policy has measured, but the order is as forecast.",
			policies: workers(), hosts: slices.Concat(numbered(4), hosts(needy, "worker-05 worker-06", drains(8*minute)), hosts(needy, "worker-07 worker-08", drains(0))),
		}},
	}
}
