package plan_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// TestRollouts edits policies during a rollout: the limit up and down, windows, selectors, pause
// and mode. It also deletes policies and creates them again. No grant may pass the limit that is in
// force when it is given, which the fleet checks at every instant. Each need leads to one reboot,
// and no node is left cordoned or marked. The end is that of a fleet that had the last policies
// from the start, except that a node that waits there may have had its reboot here.
func TestRollouts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawRollout(t)
		c := play(t, s, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		c.checkRest()
		fresh := play(t, sequence{policies: lastPolicies(c), hosts: s.hosts, lasts: s.lasts}, nil)
		for name, h := range c.hosts {
			n, want := h.view(), fresh.hosts[name].view()
			switch {
			case h.boots > 2:
				c.broken("node %s was rebooted %d times for one need", name, h.boots-1)
			case n.Cordoned || !n.Ready:
				c.broken("node %s is out of service", name)
			case h.boots == 2 && n.NeedsReboot(), h.boots == 1 && !n.NeedsReboot():
				c.broken("node %s needs a reboot: %t, after %d", name, n.NeedsReboot(), h.boots-1)
			case h.boots == 1 && fresh.hosts[name].boots == 2:
				c.broken("node %s still waits (%s); a fresh run reboots it:\n%s", name, h.describe(), fresh.String())
			case h.boots == 1 && n.Permitted.Reason != want.Permitted.Reason:
				c.broken("node %s waits otherwise than in a fresh run: %s, there %s", name, h.describe(), fresh.hosts[name].describe())
			}
		}
	})
}

// lastPolicies returns the policies as they are at the end, as if they were applied to an empty
// cluster.
func lastPolicies(c *cluster) []*v1alpha1.RebootPolicy {
	var last []*v1alpha1.RebootPolicy
	for _, p := range c.policies {
		fresh := policy(p.Name)
		fresh.Spec = *p.Spec.DeepCopy()
		last = append(last, fresh)
	}
	return last
}

// rollout is the time during which policies are edited, and patience the time allowed afterwards.
const rollout, patience = 36 * time.Hour, 10 * 24 * time.Hour

func drawRollout(t *rapid.T) sequence {
	s := sequence{lasts: patience, policies: []*v1alpha1.RebootPolicy{policy("workers")}}
	for _, edit := range drawEdits(t, 4) {
		edit.does(s.policies[0])
	}
	if oneIn(t, 3, "a policy for the rest") {
		s.policies = append(s.policies, policy("rest", priority(-1)))
	}
	for _, name := range someNodes[:rapid.IntRange(1, len(someNodes)).Draw(t, "nodes")] {
		h := needy(name, label("pool", rapid.SampledFrom([]string{"x", "y"}).Draw(t, "pool")),
			needsSince(time.Duration(rapid.IntRange(1, 3).Draw(t, "since"))*time.Hour), drains(minutes(t, 0, 19, "drain")), slow(minutes(t, 0, 4, "reacts")))
		h.reboots = minutes(t, 1, 25, "reboot")
		if oneIn(t, 4, "control plane") {
			label("node-role.kubernetes.io/control-plane", "")(h)
		}
		s.hosts = append(s.hosts, h)
	}
	for range rapid.IntRange(0, 10).Draw(t, "acts") {
		s.script = append(s.script, drawRolloutAct(t, minutes(t, 0, int(rollout/minute), "after")))
	}
	slices.SortStableFunc(s.script, func(a, b act) int { return cmp.Compare(a.after, b.after) })
	s.script = append(s.script, act{rollout, "somebody lets workers act", create("workers", func(p *v1alpha1.RebootPolicy) {
		p.Spec.Mode, p.Spec.Pause = "", nil
		if limit := p.Spec.MaxUnavailableOrDefault(); limit.String() == "0" || limit.String() == "0%" {
			p.Spec.Concurrency.MaxUnavailable = nil
		}
	})})
	return s
}

// drawRolloutAct draws an edit most of the time. Otherwise the policy is deleted and later created
// again with another spec.
func drawRolloutAct(t *rapid.T, after time.Duration) act {
	edits := drawEdits(t, 2)
	does := func(p *v1alpha1.RebootPolicy) {
		for _, e := range edits {
			e.does(p)
		}
	}
	var what strings.Builder
	for _, e := range edits {
		what.WriteString("; " + e.what)
	}
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 4:
		return act{after, "somebody deletes workers", ifThere("workers", deletePolicy("workers"))}
	case 5:
		return act{after, "somebody creates workers again" + what.String(), create("workers", does)}
	}
	return act{after, "somebody edits workers" + what.String(), onPolicy("workers", does)}
}

type specEdit struct {
	what string
	does func(*v1alpha1.RebootPolicy)
}

// drawEdits draws a few valid edits of a spec.
func drawEdits(t *rapid.T, most int) []specEdit {
	limit := rapid.SampledFrom([]string{"0", "1", "2", "3", "25%", "50%", "100%"}).Draw(t, "maxUnavailable")
	pool := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "selects")
	windows := rapid.SampledFrom([][]v1alpha1.Window{
		nil,
		{nightly("22:00", 3*time.Hour, "")},
		{nightly("23:30", 90*minute, "Europe/Berlin")},
		{nightly("02:00", time.Hour, ""), nightly("12:00", 45*minute, "America/New_York")},
	}).Draw(t, "windows")
	until := metav1.NewTime(evening.Add(minutes(t, 0, int(rollout/minute), "until")))
	all := []specEdit{
		{"limit " + limit, func(p *v1alpha1.RebootPolicy) {
			key, value := p.Spec.TopologyKey(), intstr.Parse(limit)
			p.Spec.Concurrency = &v1alpha1.Concurrency{MaxUnavailable: &value, TopologyKey: key}
		}},
		{fmt.Sprintf("%d windows", len(windows)), func(p *v1alpha1.RebootPolicy) { p.Spec.Windows = windows }},
		{"blackout", func(p *v1alpha1.RebootPolicy) {
			p.Spec.Blackouts = []v1alpha1.Blackout{{Name: "freeze", From: "2026-06-02", To: "2026-06-03"}}
		}},
		{"no blackout", func(p *v1alpha1.RebootPolicy) { p.Spec.Blackouts = nil }},
		{"pool " + pool, selects("pool", pool)},
		{"every node", func(p *v1alpha1.RebootPolicy) { p.Spec.NodeSelector = nil }},
		{"pause", paused(nil, "")},
		{"pause until " + stamp(until.Time), paused(&until, "")},
		{"no pause", func(p *v1alpha1.RebootPolicy) { p.Spec.Pause = nil }},
		{"urgent until " + stamp(until.Time), urgent(until.Time, "Windows", "Blackouts", "Pause")},
		{"urgent without windows until " + stamp(until.Time), urgent(until.Time, "Windows")},
		{"dry run", dryRun},
		{"enforce", func(p *v1alpha1.RebootPolicy) { p.Spec.Mode = v1alpha1.ModeEnforce }},
		{"domains", domains("pool")},
		{"settle", func(p *v1alpha1.RebootPolicy) { p.Spec.Reboot = &v1alpha1.Reboot{Settle: &v1alpha1.Duration{}} }},
	}
	var edits []specEdit
	for range rapid.IntRange(1, most).Draw(t, "edits") {
		edits = append(edits, rapid.SampledFrom(all).Draw(t, "edit"))
	}
	return edits
}

func nightly(start string, duration time.Duration, zone string) v1alpha1.Window {
	return v1alpha1.Window{Name: "at-" + start[:2], Start: start, Duration: v1alpha1.Duration{Duration: duration}, TimeZone: zone}
}

// create creates a policy, or edits it if it exists. One that is being deleted has to be gone
// first.
func create(name string, change func(*v1alpha1.RebootPolicy)) func(*cluster) {
	var does func(*cluster)
	does = func(c *cluster) {
		switch p := c.policies[name]; {
		case p == nil:
			c.policies[name] = policy(name)
		case p.DeletionTimestamp != nil:
			c.script = slices.Insert(c.script, 1, act{c.now.Sub(evening) + minute, "somebody tries again", does})
			slices.SortStableFunc(c.script[1:], func(a, b act) int { return cmp.Compare(a.after, b.after) })
			return
		}
		c.edit(name, change)
	}
	return does
}
