package plan_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

// evening is the start of every sequence, a Monday.
var evening = time.Date(2026, 6, 1, 22, 0, 0, 0, time.UTC)

// maxRounds limits a sequence. One that takes more never ends.
const maxRounds = 1000

// sequence is one story about a fleet.
type sequence struct {
	about    string
	policies []*v1alpha1.RebootPolicy
	hosts    []*host
	// script holds what people and hardware do during the story.
	script []act
	// lasts ends the story, or is zero to play until nothing is left to happen.
	lasts time.Duration
}

// act is something that happens from outside.
type act struct {
	after time.Duration
	what  string
	does  func(c *cluster)
}

// tester is a test, or one try of a property.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// cluster is an API server with Nodes and policies in memory, the machines behind the Nodes, and
// the time.
type cluster struct {
	tester
	now      time.Time
	policies map[string]*v1alpha1.RebootPolicy
	hosts    map[string]*host
	script   []act
	end      time.Time

	// woken are the policies that an event queues for the manager, and due are those that time
	// alone does.
	woken map[string]bool
	// touched is true if a Node was written, so that its agent looks at it.
	touched bool
	due     map[string]time.Time
	// gates are the gates' results, by policy.
	gates map[string][]v1alpha1.GateStatus
	// judge judges every write. found is the number of violations in the initial state.
	judge *judge.Judge
	by    string
	found int
	// random shuffles who comes first and makes writes fail. If nil, the order is by name and all
	// writes succeed.
	random *rand.Rand

	transcript
}

// play plays a story. Each round is one instant: first the script, then the manager passes over
// each queued policy, then each agent takes one step.
func play(t tester, s sequence, random *rand.Rand) *cluster {
	c := newCluster(t, s, random)
	c.play(func() {})
	return c
}

// play plays to the end and calls look after each round.
func (c *cluster) play(look func()) {
	for round := 0; !c.now.After(c.end) || len(c.woken) > 0; round++ {
		if round == maxRounds {
			c.Fatalf("the story does not end. So far:\n%s", c.String())
		}
		c.round()
		look()
		next := c.next()
		if next.IsZero() {
			break
		}
		c.now = next
	}
}

func newCluster(t tester, s sequence, random *rand.Rand) *cluster {
	c := &cluster{
		tester: t, now: evening, end: evening.Add(s.lasts), random: random,
		policies: map[string]*v1alpha1.RebootPolicy{}, hosts: map[string]*host{}, script: slices.Clone(s.script),
		woken: map[string]bool{}, due: map[string]time.Time{}, gates: map[string][]v1alpha1.GateStatus{},
		judge: judge.New(judge.Options{TrueClocks: true, Exact: true}), by: judge.Admin, found: math.MaxInt,
		transcript: transcript{shown: map[string]string{}, seen: map[string]string{}},
	}
	if s.lasts == 0 {
		c.end = evening.AddDate(0, 0, 7)
	}
	for _, p := range s.policies {
		c.put(p.DeepCopy())
		c.woken[p.Name] = true
	}
	for _, h := range s.hosts {
		c.hosts[h.name] = h.clone()
		c.take(judge.Change{Name: h.name, Node: c.hosts[h.name].node})
	}
	c.found = len(c.judge.Violations())
	return c
}

func (c *cluster) round() {
	c.by = judge.Admin
	for len(c.script) > 0 && !c.now.Before(evening.Add(c.script[0].after)) {
		c.add("-- %s", c.script[0].what)
		c.script[0].does(c)
		c.script = c.script[1:]
	}
	c.by = v1alpha1.FieldOwnerManager
	for _, name := range shuffled(c, slices.Sorted(maps.Keys(c.policies))) {
		if due := c.due[name]; c.woken[name] || !due.IsZero() && !c.now.Before(due) {
			if !c.pass(name) && c.random == nil {
				c.broken("eight rounds were not enough for policy %s", name)
			}
		}
	}
	for _, d := range plan.Ungoverned(c.governor(), c.views()) {
		c.decide(c.hosts[d.Node], d)
	}
	c.writeMarkers("", plan.UngovernedMarkers(c.governor(), c.views()))
	delete(c.woken, "")
	c.by = v1alpha1.FieldOwnerAgent
	for _, name := range shuffled(c, slices.Sorted(maps.Keys(c.hosts))) {
		c.hosts[name].step(c)
	}
	c.record(c)
}

// next returns the next time at which anything happens, or zero. The manager acts on an event one
// second later.
func (c *cluster) next() time.Time {
	if len(c.woken) > 0 || c.touched {
		c.touched = false
		return c.now.Add(time.Second)
	}
	var next time.Time
	consider := func(t time.Time) {
		if t.After(c.now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, t := range c.due {
		consider(t)
	}
	for _, h := range c.hosts {
		consider(h.timer(c))
	}
	if len(c.script) > 0 {
		consider(evening.Add(c.script[0].after))
	}
	return next
}

// update changes a Node and wakes the policies to which the real watch maps it: by its labels and
// its grant, before and after, and by the ledgers that hold it.
func (c *cluster) update(h *host, change func(*corev1.Node)) {
	c.wake(h.node)
	if h.node == nil {
		return
	}
	h.node, c.touched = h.node.DeepCopy(), true
	change(h.node)
	c.take(judge.Change{Name: h.name, Node: h.node})
	c.wake(h.node)
}

func (c *cluster) wake(node *corev1.Node) {
	if node == nil {
		return
	}
	for _, name := range c.governor().Affected(new(record.Of(node))) {
		c.wakePolicy(name)
	}
}

func (c *cluster) wakePolicy(name string) {
	if c.policies[name] != nil {
		c.woken[name] = true
	}
}

// edit changes a policy and wakes all of them, because nodes may move between policies.
func (c *cluster) edit(name string, change func(*v1alpha1.RebootPolicy)) {
	p := c.policies[name].DeepCopy()
	change(p)
	c.put(p)
	c.wakeAll()
}

func (c *cluster) put(p *v1alpha1.RebootPolicy) {
	c.policies[p.Name] = p
	c.take(judge.Change{Name: p.Name, Policy: p})
}

// remove deletes a policy together with its finalizer.
func (c *cluster) remove(name string) {
	c.take(judge.Change{Name: name, Policy: c.policies[name], Gone: true})
	delete(c.policies, name)
	delete(c.due, name)
	delete(c.woken, name)
	c.wakeAll()
}

func (c *cluster) wakeAll() {
	for name := range c.policies {
		c.woken[name] = true
	}
}

func (c *cluster) governor() governor.Governor { return governor.Of(c.all()) }

// all returns the policies by name.
func (c *cluster) all() []v1alpha1.RebootPolicy {
	policies := make([]v1alpha1.RebootPolicy, 0, len(c.policies))
	for _, name := range slices.Sorted(maps.Keys(c.policies)) {
		policies = append(policies, *c.policies[name])
	}
	return policies
}

func (c *cluster) at() metav1.Time { return metav1.NewTime(c.now) }

// chance returns true once in n times, and never in the default order.
func (c *cluster) chance(n int) bool { return c.random != nil && c.random.IntN(n) == 0 }

func shuffled[T any](c *cluster, list []T) []T {
	if c.random != nil {
		c.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return list
}
