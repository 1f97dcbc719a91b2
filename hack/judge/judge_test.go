package judge

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const (
	agent   = v1alpha1.FieldOwnerAgent
	manager = v1alpha1.FieldOwnerManager
)

// began is a Sunday on which clocks in Berlin go from 2:00 to 3:00, at 1:00 UTC.
var began = time.Date(2000, time.March, 26, 0, 0, 0, 0, time.UTC)

// story builds a history.
type story struct {
	now     time.Time
	records []Change
	current *v1alpha1.RebootPolicy
	nodes   map[string]*corev1.Node
}

// play builds the story of a policy p and two nodes a and b, with a limit of one.
func play(steps ...func(*story)) *story {
	s := &story{now: began, nodes: map[string]*corev1.Node{}, current: &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}}
	s.policy(Admin, func(*v1alpha1.RebootPolicy) {})
	for _, name := range []string{"a", "b"} {
		s.nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		joins(name, name)(s)
	}
	for _, step := range steps {
		step(s)
	}
	return s
}

func (s *story) node(name, by string, change func(*corev1.Node)) {
	s.now = s.now.Add(time.Second)
	after := s.nodes[name].DeepCopy()
	change(after)
	s.nodes[name] = after
	s.records = append(s.records, Change{At: s.now, Name: name, By: by, Node: after})
}

func (s *story) policy(by string, change func(*v1alpha1.RebootPolicy)) {
	s.now = s.now.Add(time.Second)
	after := s.current.DeepCopy()
	change(after)
	s.current = after
	s.records = append(s.records, Change{At: s.now, Name: after.Name, By: by, Policy: after})
}

func host(name string, event MachineEvent) func(*story) {
	return func(s *story) { s.records = append(s.records, Change{At: s.now, Name: name, Host: event, Boot: name}) }
}

func spec(change func(*v1alpha1.RebootPolicySpec)) func(*story) {
	return func(s *story) { s.policy(Admin, func(p *v1alpha1.RebootPolicy) { change(&p.Spec) }) }
}

func limitIs(value intstr.IntOrString) func(*story) {
	return spec(func(s *v1alpha1.RebootPolicySpec) { s.Concurrency = &v1alpha1.Concurrency{MaxUnavailable: &value} })
}

func passes(d time.Duration) func(*story) { return func(s *story) { s.now = s.now.Add(d) } }

// grant adds an entry to the ledger and the grant to the Node.
func grant(name string, seq int64) func(*story) { return grantAfter(0, name, seq) }

// grantAfter is like grant, but the decision was made some time before its entry is written.
func grantAfter(d time.Duration, name string, seq int64) func(*story) {
	return all(listed(d, v1alpha1.LedgerEntry{Node: name, Seq: seq, BootID: name}), carries(name, seq))
}

// listed adds an entry to the ledger for a decision made some time before.
func listed(d time.Duration, e v1alpha1.LedgerEntry) func(*story) {
	return func(s *story) {
		s.policy(manager, func(p *v1alpha1.RebootPolicy) {
			e.At = metav1.NewTime(s.now.Add(-d))
			p.Status.Seq = max(p.Status.Seq, e.Seq)
			p.Status.Grants = append(p.Status.Grants, e)
		})
	}
}

func ledger(name string, seq int64, boot string) func(*story) {
	return listed(0, v1alpha1.LedgerEntry{Node: name, Seq: seq, BootID: boot})
}

// carries puts the grant on the Node.
func carries(name string, seq int64) func(*story) { return carriesOf("p", name, seq) }

func carriesOf(policy, name string, seq int64) func(*story) {
	return shows(name, protocol.Grant{Policy: policy, Seq: seq, State: protocol.GrantActive})
}

func shows(name string, g protocol.Grant) func(*story) {
	return func(s *story) {
		s.node(name, manager, func(n *corev1.Node) {
			g.BootID, g.At = name, metav1.NewTime(s.now)
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.AnnotationGrant, g.String())
		})
	}
}

// needing makes a node need a reboot.
func needing(name string) func(*story) {
	return func(s *story) {
		s.node(name, agent, func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions[:1:1],
				corev1.NodeCondition{Type: v1alpha1.NodeRebootRequired, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.now)})
		})
	}
}

func drains(name string, seq int64) func(*story) {
	return reports(name, protocol.Progress{Seq: seq, Phase: protocol.PhaseDraining, Cordoned: true})
}

// commits makes the agent report that it calls logind next.
func commits(name string, seq int64) func(*story) {
	return reports(name, protocol.Progress{Seq: seq, Phase: protocol.PhaseRebooting, Cordoned: true})
}

// aborts makes the agent give up.
func aborts(name string, seq int64) func(*story) {
	return reports(name, protocol.Progress{Seq: seq, Phase: protocol.PhaseAborted})
}

func reports(name string, p protocol.Progress) func(*story) {
	return func(s *story) {
		s.node(name, agent, func(n *corev1.Node) {
			p.BootID, p.At = name, metav1.NewTime(s.now)
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.AnnotationProgress, p.String())
			n.Spec.Unschedulable = p.Cordoned
		})
	}
}

// finishes makes the manager finish the grant.
func finishes(name string, seq int64) func(*story) {
	return all(shows(name, protocol.Grant{Policy: "p", Seq: seq, State: protocol.GrantFinished}), cordons(name, manager, false))
}

func cordons(name, by string, on bool) func(*story) {
	return func(s *story) { s.node(name, by, func(n *corev1.Node) { n.Spec.Unschedulable = on }) }
}

// deleted deletes a Node. Its host may stay.
func deleted(name string) func(*story) {
	return func(s *story) {
		s.now = s.now.Add(time.Second)
		s.records = append(s.records, Change{At: s.now, Name: name, By: Admin, Node: s.nodes[name], Gone: true})
		s.nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
}

// joins boots a node, and creates its Node if it was deleted.
func joins(name, boot string) func(*story) {
	return func(s *story) {
		s.node(name, "kubelet", func(n *corev1.Node) {
			n.Status.NodeInfo.BootID = boot
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		})
	}
}

// wiped removes the ledger from the status.
func wiped(by string) func(*story) {
	return func(s *story) { s.policy(by, func(p *v1alpha1.RebootPolicy) { p.Status.Grants = nil }) }
}

// policyGone deletes the policy, and policyAnew creates another one of the same name.
func policyGone(s *story) {
	s.now = s.now.Add(time.Second)
	s.records = append(s.records, Change{At: s.now, Name: "p", By: manager, Policy: s.current, Gone: true})
	s.current = &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "another"}}
}

func policyAnew(s *story) { s.policy(Admin, func(*v1alpha1.RebootPolicy) {}) }

func policyDeleting(s *story) {
	s.policy(Admin, func(p *v1alpha1.RebootPolicy) { p.DeletionTimestamp = &metav1.Time{Time: s.now} })
}

// released removes the entries of a node from the ledger.
func released(name string) func(*story) {
	return func(s *story) {
		s.policy(manager, func(p *v1alpha1.RebootPolicy) {
			p.Status.Grants = slices.DeleteFunc(p.Status.Grants, func(e v1alpha1.LedgerEntry) bool { return e.Node == name })
		})
	}
}

func tainted(name string) func(*story) {
	return func(s *story) {
		s.node(name, manager, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintPending}} })
	}
}

func label(name, key, value string) func(*story) {
	return func(s *story) {
		s.node(name, Admin, func(n *corev1.Node) { metav1.SetMetaDataLabel(&n.ObjectMeta, key, value) })
	}
}

func labelled(name, pool string) func(*story) { return label(name, "pool", pool) }

// window sets a window that opens on Sundays.
func window(start string, d time.Duration, zone string) func(*story) {
	return spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Windows = []v1alpha1.Window{{Name: "w", Start: start, Duration: v1alpha1.Duration{Duration: d}, TimeZone: zone, Days: []v1alpha1.Day{"Sun"}}}
	})
}

func blackout(from, to string) func(*story) {
	return spec(func(s *v1alpha1.RebootPolicySpec) { s.Blackouts = []v1alpha1.Blackout{{From: from, To: to}} })
}

// budgeted adds a PodDisruptionBudget that requires two pods, and that lets the named pods go.
func budgeted(leave ...string) func(*story) {
	return func(s *story) {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "app"}}
		b.Spec.Selector, b.Spec.MinAvailable = &metav1.LabelSelector{}, new(intstr.FromInt32(2))
		b.Status.DisruptedPods = map[string]metav1.Time{}
		for _, pod := range leave {
			b.Status.DisruptedPods[pod] = metav1.Time{}
		}
		s.records = append(s.records, Change{At: s.now, Budget: b})
	}
}

func pods(ready corev1.ConditionStatus, uids ...string) func(*story) {
	return func(s *story) {
		for _, uid := range uids {
			s.records = append(s.records, Change{At: s.now, Pod: podOf(uid, ready)})
		}
	}
}

// on adds Ready pods on a node.
func on(node string, uids ...string) func(*story) {
	return func(s *story) {
		for _, uid := range uids {
			pod := podOf(uid, corev1.ConditionTrue)
			pod.Spec.NodeName = node
			s.records = append(s.records, Change{At: s.now, Pod: pod})
		}
	}
}

// goes removes a pod.
func goes(uid, by string) func(*story) {
	return func(s *story) {
		s.records = append(s.records, Change{At: s.now, By: by, Pod: podOf(uid, corev1.ConditionTrue), Gone: true})
	}
}

func podOf(uid string, ready corev1.ConditionStatus) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	return pod
}

func asksFor(name string) func(*story) { return requestedFor(name, "x") }

// requestedFor requests a reboot for a reason.
func requestedFor(name, reason string) func(*story) {
	return func(s *story) {
		s.node(name, Admin, func(n *corev1.Node) {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.AnnotationRebootRequested, reason)
		})
	}
}

func all(steps ...func(*story)) func(*story) {
	return func(s *story) {
		for _, step := range steps {
			step(s)
		}
	}
}

// reboot plays a complete reboot.
func reboot(name string, seq int64) func(*story) { return all(host(name, Staged), rebootOf(name, seq)) }

// returns plays a need that is back, and another reboot.
func returns(name string, seq int64) func(*story) {
	return all(host(name, Returned), rebootOf(name, seq))
}

func rebootOf(name string, seq int64) func(*story) {
	return all(grant(name, seq), drains(name, seq), commits(name, seq), host(name, Rebooted), finishes(name, seq), released(name))
}

// judged returns a judge that has taken in a story.
func judged(steps ...func(*story)) *Judge {
	return judgedBy(Options{TrueClocks: true, Semaphore: true}, steps...)
}

func judgedBy(o Options, steps ...func(*story)) *Judge {
	j := New(o)
	for _, r := range play(steps...).records {
		j.Take(r)
	}
	return j
}

// broken returns the rules that a story breaks, in order.
func broken(steps ...func(*story)) []Rule { return rulesOf(judged(steps...)) }

func rulesOf(j *Judge) []Rule {
	var rules []Rule
	for _, v := range j.Violations() {
		rules = append(rules, v.Rule)
	}
	return rules
}

// histories maps names to stories and the rules that they break.
type histories map[string]struct {
	story []func(*story)
	want  []Rule
}

func (h histories) check(t *testing.T) {
	t.Helper()
	for name, tc := range h {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, broken(tc.story...)); diff != "" {
				t.Errorf("rules broken (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRule checks that some test expects each rule to be broken.
func TestRule(t *testing.T) {
	rules, err := os.ReadFile("change.go")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("*_test.go")
	var tests []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, text...)
	}
	expected := bytes.Join(regexp.MustCompile(`\[\]Rule\{[^}]+`).FindAll(tests, -1), nil)
	for _, rule := range regexp.MustCompile(`(\w+) +Rule = "`).FindAllSubmatch(rules, -1) {
		if !regexp.MustCompile(`\b` + string(rule[1]) + `\b`).Match(expected) {
			t.Errorf("no history breaks rule %s", rule[1])
		}
	}
}

func TestTake(t *testing.T) {
	const autumn = 217 * 24 * time.Hour // until the Sunday on which clocks in Berlin go from 3:00 to 2:00
	cases := histories{
		"one after the other":                                   {[]func(*story){reboot("a", 1), reboot("b", 2)}, nil},
		"two at once, with a limit of one":                      {[]func(*story){host("a", Staged), grant("a", 1), grant("b", 2), drains("a", 1), drains("b", 2), commits("a", 1), host("a", Rebooted)}, []Rule{Unavailable, Limit}},
		"two nodes down without grants":                         {[]func(*story){drains("a", 1), drains("b", 2)}, []Rule{Ledger, Ledger, Limit}},
		"two under a limit of two":                              {[]func(*story){limitIs(intstr.FromInt32(2)), grant("a", 1), grant("b", 2), drains("a", 1), drains("b", 2)}, nil},
		"a percentage is rounded down, but to at least one":     {[]func(*story){limitIs(intstr.FromString("99%")), grant("a", 1), grant("b", 2), drains("a", 1), drains("b", 2)}, []Rule{Unavailable, Limit}},
		"a limit that was lowered after the grants":             {[]func(*story){limitIs(intstr.FromInt32(2)), grant("a", 1), grant("b", 2), limitIs(intstr.FromInt32(1)), drains("a", 1), drains("b", 2)}, nil},
		"a reboot without a need":                               {[]func(*story){grant("a", 1), drains("a", 1), commits("a", 1), host("a", Rebooted)}, []Rule{Need}},
		"a second reboot for one need":                          {[]func(*story){reboot("a", 1), grant("a", 2), drains("a", 2), commits("a", 2), host("a", Rebooted)}, []Rule{Need}},
		"a reboot for a need that a power failure has met":      {[]func(*story){host("a", Staged), host("a", Lost), grant("a", 1), drains("a", 1), commits("a", 1), host("a", Rebooted)}, []Rule{Need}},
		"a reboot without a grant":                              {[]func(*story){host("a", Staged), host("a", Rebooted)}, []Rule{Granted}},
		"a machine that was restored to its previous boot":      {[]func(*story){reboot("a", 1), host("a", Staged), host("a", Rebooted)}, []Rule{Granted}},
		"a need that comes back after each reboot":              {[]func(*story){reboot("a", 1), returns("a", 2), returns("a", 3)}, []Rule{Need}},
		"a need that came back once":                            {[]func(*story){reboot("a", 1), returns("a", 2), reboot("a", 3)}, nil},
		"a need that came back, and a request":                  {[]func(*story){reboot("a", 1), returns("a", 2), asksFor("a"), returns("a", 3)}, nil},
		"a machine that was repaired":                           {[]func(*story){host("a", Staged), host("a", Repaired), grant("a", 1), drains("a", 1), commits("a", 1), host("a", Rebooted)}, []Rule{Need}},
		"a reboot that was requested":                           {[]func(*story){asksFor("a"), grant("a", 1), drains("a", 1), commits("a", 1), host("a", Rebooted)}, nil},
		"one request and endless reboots":                       {[]func(*story){asksFor("a"), grant("a", 1), drains("a", 1), commits("a", 1), host("a", Rebooted), host("a", Rebooted), host("a", Rebooted)}, []Rule{Need}},
		"an administrator's cordon undone by the agent":         {[]func(*story){cordons("a", Admin, true), cordons("a", agent, false)}, []Rule{Ownership}},
		"an administrator's cordon undone by the manager":       {[]func(*story){cordons("a", Admin, true), cordons("a", manager, false)}, []Rule{Ownership}},
		"an administrator's cordon undone by the administrator": {[]func(*story){cordons("a", Admin, true), cordons("a", Admin, false)}, nil},
		"an administrator takes a cordon over":                  {[]func(*story){grant("a", 1), drains("a", 1), cordons("a", Admin, false), cordons("a", Admin, true), cordons("a", agent, false)}, []Rule{Ownership}},
		"an administrator cordons what is cordoned":             {[]func(*story){grant("a", 1), drains("a", 1), cordons("a", Admin, true), cordons("a", agent, false)}, nil},
		"a grant in a window":                                   {[]func(*story){window("00:00", time.Hour, "UTC"), grant("a", 1)}, nil},
		"a grant before a window":                               {[]func(*story){window("00:01", time.Hour, "UTC"), grant("a", 1)}, []Rule{Window}},
		"a grant that was decided in the window":                {[]func(*story){window("00:00", time.Hour, "UTC"), passes(time.Hour + time.Minute), grantAfter(80*time.Second, "a", 1)}, nil},
		"a grant that is older than a decision may be":          {[]func(*story){window("00:00", time.Hour, "UTC"), passes(time.Hour + 2*time.Minute), grantAfter(3*time.Minute, "a", 1)}, []Rule{Window}},
		"a grant after a window":                                {[]func(*story){window("00:00", time.Hour, "UTC"), passes(time.Hour + 2*time.Minute), grant("a", 1)}, []Rule{Window}},
		"a window begins although clocks skip its start":        {[]func(*story){window("02:30", time.Hour, "Europe/Berlin"), passes(time.Hour), grant("a", 1)}, nil},
		"a window keeps its duration across clock changes":      {[]func(*story){window("01:00", 90*time.Minute, "Europe/Berlin"), passes(85 * time.Minute), grant("a", 1)}, nil},
		"a window does not last longer across clock changes":    {[]func(*story){window("01:00", 90*time.Minute, "Europe/Berlin"), passes(95 * time.Minute), grant("a", 1)}, []Rule{Window}},
		"a window that began the day before":                    {[]func(*story){window("23:30", time.Hour, "Europe/Berlin"), passes(22*time.Hour + 10*time.Minute), grant("a", 1)}, nil},
		"a start that is repeated, the first time":              {[]func(*story){window("02:30", 10*time.Minute, "Europe/Berlin"), passes(autumn + 35*time.Minute), grant("a", 1)}, nil},
		"a start that is repeated, the second time":             {[]func(*story){window("02:30", 10*time.Minute, "Europe/Berlin"), passes(autumn + 95*time.Minute), grant("a", 1)}, []Rule{Window}},
		"a grant in a pause":                                    {[]func(*story){spec(func(s *v1alpha1.RebootPolicySpec) { s.Pause = &v1alpha1.Pause{} }), grant("a", 1)}, []Rule{Window}},
		"a grant of a policy in mode DryRun":                    {[]func(*story){spec(func(s *v1alpha1.RebootPolicySpec) { s.Mode = v1alpha1.ModeDryRun }), grant("a", 1)}, []Rule{Window}},
		"a grant in a blackout":                                 {[]func(*story){blackout("2000-03-26", "2000-03-27"), passes(time.Hour), grant("a", 1)}, []Rule{Window}},
	}
	ignores := func(hours ...v1alpha1.UrgentIgnore) func(*story) {
		return spec(func(s *v1alpha1.RebootPolicySpec) {
			s.Deadline = &v1alpha1.Duration{Duration: 24 * time.Hour}
			s.Urgent = &v1alpha1.Urgent{Overdue: &v1alpha1.UrgentNodes{Ignore: hours}}
		})
	}
	late, day := v1alpha1.UrgentIgnoresWindows, 24*time.Hour
	hour := window("00:00", time.Hour, "UTC")
	maps.Copy(cases, histories{
		"a grant outside a window, past the deadline that ignores it": {[]func(*story){hour, ignores(late), passes(2 * time.Hour), needing("a"), passes(day), grant("a", 1)}, nil},
		"right before the deadline":                                   {[]func(*story){hour, ignores(late), passes(2 * time.Hour), needing("a"), passes(day - 10*time.Second), grant("a", 1)}, []Rule{Window}},
		"past a deadline that does not ignore windows":                {[]func(*story){hour, ignores(), passes(2 * time.Hour), needing("a"), passes(day), grant("a", 1)}, []Rule{Window}},
		"past a deadline, in a blackout":                              {[]func(*story){ignores(late), blackout("2000-03-27", "2000-03-28"), passes(2 * time.Hour), needing("a"), passes(day), grant("a", 1)}, []Rule{Window}},
		"past a deadline that ignores blackouts, in a blackout":       {[]func(*story){ignores(late, v1alpha1.UrgentIgnoresBlackouts), blackout("2000-03-27", "2000-03-28"), passes(2 * time.Hour), needing("a"), passes(day), grant("a", 1)}, nil},
		"the deadline of another node":                                {[]func(*story){hour, ignores(late), passes(2 * time.Hour), needing("b"), passes(day), grant("a", 1)}, []Rule{Window}},
		"a need that counts from its last reboot": {[]func(*story){
			hour, ignores(late), needing("a"), passes(30 * time.Minute), grant("a", 1), carries("a", 1), drains("a", 1), commits("a", 1), joins("a", "again"), finishes("a", 1),
			released("a"), passes(day - time.Minute), grant("a", 2),
		}, []Rule{Window}},
		"a need that began again a moment ago": {[]func(*story){hour, ignores(late), passes(2 * time.Hour), needing("a"), passes(day), needing("a"), grant("a", 1)}, nil},
	})
	staged := host("a", Staged)
	maps.Copy(cases, histories{
		"a Node that is deleted past the point of no return":         {[]func(*story){staged, grant("a", 1), drains("a", 1), commits("a", 1), deleted("a"), host("a", Rebooted)}, nil},
		"a Node that is deleted before the point of no return":       {[]func(*story){staged, grant("a", 1), drains("a", 1), deleted("a"), host("a", Rebooted)}, []Rule{Granted}},
		"a host that goes down long after its Node":                  {[]func(*story){staged, grant("a", 1), drains("a", 1), commits("a", 1), deleted("a"), passes(time.Hour), host("a", Rebooted)}, []Rule{Granted}},
		"a Node that is deleted disrupts nothing":                    {[]func(*story){grant("a", 1), drains("a", 1), deleted("a"), released("a"), grant("b", 2), drains("b", 2)}, nil},
		"another host of the same name needs nothing":                {[]func(*story){staged, host("a", Scrapped), grant("a", 1), drains("a", 1), commits("a", 1), host("a", Rebooted)}, []Rule{Need}},
		"a boot that the grant was given to":                         {[]func(*story){joins("a", "a"), ledger("a", 1, "a"), carries("a", 1), drains("a", 1)}, nil},
		"another boot under the grant":                               {[]func(*story){joins("a", "a"), ledger("a", 1, "a"), deleted("a"), joins("a", "2"), carries("a", 1), drains("a", 1)}, []Rule{Fence}},
		"a grant of a policy that is being deleted":                  {[]func(*story){policyDeleting, grant("a", 1)}, []Rule{Window}},
		"a grant that was given before":                              {[]func(*story){grant("a", 1), policyDeleting, drains("a", 1)}, nil},
		"a node begins for a policy that never existed":              {[]func(*story){carriesOf("q", "a", 1), drains("a", 1)}, []Rule{Limit}},
		"a node begins for a deleted policy":                         {[]func(*story){grant("a", 1), policyGone, drains("a", 1)}, []Rule{Limit}},
		"a node that begins without an entry":                        {[]func(*story){carries("a", 1), drains("a", 1)}, []Rule{Ledger}},
		"a node that begins after its entry was released":            {[]func(*story){grant("a", 1), wiped(manager), drains("a", 1)}, []Rule{Ledger}},
		"a node that begins after an administrator wiped the ledger": {[]func(*story){grant("a", 1), wiped(Admin), drains("a", 1)}, nil},
		"an entry that was made for another Node": {
			[]func(*story){grant("a", 1), func(s *story) {
				s.policy(manager, func(p *v1alpha1.RebootPolicy) { p.Status.Grants[0].NodeUID = "another" })
			}, drains("a", 1)}, []Rule{Ledger},
		},
		"a policy that is created again has a limit":               {[]func(*story){policyGone, policyAnew, grant("a", 1), grant("b", 2), drains("a", 1), drains("b", 2)}, []Rule{Unavailable, Limit}},
		"a ledger adopts a grant after the window":                 {[]func(*story){window("00:00", time.Hour, "UTC"), carries("a", 1), passes(2 * time.Hour), ledger("a", 1, "a")}, nil},
		"a ledger has another number than the node after a window": {[]func(*story){window("00:00", time.Hour, "UTC"), carries("a", 1), passes(2 * time.Hour), ledger("a", 2, "a")}, []Rule{Window}},
	})
	percent := func(value string) func(*story) { return limitIs(intstr.FromString(value)) }
	two := limitIs(intstr.FromInt32(2))
	maps.Copy(cases, histories{
		"50% of two is one":                {[]func(*story){percent("50%"), grant("a", 1), drains("a", 1)}, nil},
		"50% of two is not more than one":  {[]func(*story){percent("50%"), grant("a", 1), grant("b", 2), drains("a", 1), drains("b", 2)}, []Rule{Unavailable, Limit}},
		"100% of two is two":               {[]func(*story){percent("100%"), grant("a", 1), grant("b", 2), drains("a", 1), drains("b", 2)}, nil},
		"0% allows no nodes":               {[]func(*story){percent("0%"), grant("a", 1), drains("a", 1)}, []Rule{Unavailable, Limit}},
		"a node that another policy has":   {[]func(*story){labelled("a", "q"), labelled("b", "q"), percent("100%"), passes(time.Hour), another, passes(time.Hour), grant("a", 1), drains("a", 1)}, []Rule{Governs, Unavailable, Limit}},
		"a count of nodes that is current": {[]func(*story){labelled("a", "q"), percent("100%"), another, grant("a", 1), grant("b", 2), drains("a", 1), drains("b", 2)}, nil},
		"a limit that is lowered before a grant": {
			[]func(*story){two, grant("a", 1), released("a"), drains("b", 9), aborts("b", 9), limitIs(intstr.FromInt32(1)), grant("b", 2), grant("a", 3), drains("b", 2), drains("a", 3)}, []Rule{Ledger, Unavailable, Limit},
		},
		"a slot that is given away before its holder is back": {
			[]func(*story){grant("a", 1), drains("a", 1), released("a"), grant("b", 2), drains("b", 2)}, []Rule{Release, Limit},
		},
		"a drain under a newer grant goes on": {
			[]func(*story){grant("a", 1), drains("a", 1), grant("a", 2), grant("b", 3), drains("b", 3)}, []Rule{Ledger, Unavailable, Limit},
		},
		"a grant that is cancelled after a reboot": {[]func(*story){reboot("a", 1), grant("a", 2), released("a"), grant("b", 3), drains("b", 3)}, nil},
		"an eviction that the budget allows":       {[]func(*story){budgeted(), pods("True", "1", "2", "3"), budgeted("1"), goes("1", "")}, nil},
		"an eviction past the budget":              {[]func(*story){budgeted(), pods("True", "1", "2"), budgeted("1"), goes("1", "")}, []Rule{Budget}},
		"a pod that is deleted instead":            {[]func(*story){budgeted(), pods("True", "1", "2", "3"), goes("1", "")}, []Rule{Budget}},
		"a replacement that is not Ready yet": {
			[]func(*story){pods("True", "1", "2", "3"), budgeted("1"), goes("1", ""), pods("False", "4"), budgeted("2"), goes("2", "")}, []Rule{Budget},
		},
		"pods that came back go down with their machine":       {[]func(*story){budgeted(), on("a", "1", "2"), pods("True", "3"), passes(time.Minute), reboot("a", 1)}, []Rule{Budget}},
		"pods that came back a moment ago":                     {[]func(*story){budgeted(), pods("True", "3", "4"), on("a", "1", "2"), reboot("a", 1)}, nil},
		"pods that came back, as many as the budget allows":    {[]func(*story){budgeted(), on("a", "1"), pods("True", "2", "3"), passes(time.Minute), reboot("a", 1)}, nil},
		"pods that came back, and whose evictions are allowed": {[]func(*story){budgeted(), on("a", "1"), pods("True", "2"), budgeted("1"), passes(time.Minute), reboot("a", 1)}, nil},
		"pods that came back, and drains that end with a reboot": {
			[]func(*story){spec(func(s *v1alpha1.RebootPolicySpec) {
				s.Drain = &v1alpha1.Drain{OnTimeout: v1alpha1.DrainTimeoutReboot}
			}), budgeted(), on("a", "1"), pods("True", "2"), passes(time.Minute), reboot("a", 1)}, nil,
		},
		"a pod that goes with its machine":                  {[]func(*story){budgeted(), pods("True", "1", "2"), goes("1", Machine)}, nil},
		"an eviction after a pod was lost with its machine": {[]func(*story){budgeted(), pods("True", "1", "2", "3", "4"), goes("1", Machine), budgeted("2"), goes("2", "")}, nil},
	})
	cases.check(t)
}

func TestJudge_End(t *testing.T) {
	cases := map[string]struct {
		story []func(*story)
		left  []string
		want  []Rule
	}{
		"all is well":                        {[]func(*story){reboot("a", 1)}, nil, nil},
		"a node is left cordoned":            {[]func(*story){host("a", Staged), grant("a", 1), drains("a", 1), commits("a", 1), host("a", Rebooted)}, nil, []Rule{Rest, Rest, Rest}},
		"an administrator's cordon may stay": {[]func(*story){cordons("a", Admin, true)}, nil, nil},
		"an update still waits":              {[]func(*story){host("a", Staged)}, nil, []Rule{Need}},
		"a request is still there":           {[]func(*story){asksFor("a")}, nil, []Rule{Need}},
		"a node is left tainted":             {[]func(*story){tainted("a")}, nil, []Rule{Rest}},
		"an entry is left":                   {[]func(*story){grant("a", 1)}, nil, []Rule{Rest}},
		"a machine that leaves is done":      {[]func(*story){host("a", Staged), host("a", Scrapped)}, nil, nil},
		"a slot that was never free": {
			[]func(*story){limitIs(intstr.FromInt32(2)), grant("a", 1), drains("a", 1), limitIs(intstr.FromInt32(1)), grant("b", 2), drains("b", 2), aborts("b", 2), released("b"), aborts("a", 1), released("a")},
			nil,
			[]Rule{Unavailable, Semaphore},
		},
		"a limit that is lowered under grants": {
			[]func(*story){limitIs(intstr.FromInt32(2)), grant("a", 1), grant("b", 2), limitIs(intstr.FromInt32(1)), drains("a", 1), drains("b", 2), aborts("b", 2), released("b"), aborts("a", 1), released("a")}, nil, nil,
		},
		"something unknown is left": {nil, []string{"policy p has grants"}, []Rule{Convergence}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			j := judged(tc.story...)
			j.End(began.Add(time.Hour), tc.left...)
			if diff := cmp.Diff(tc.want, rulesOf(j)); diff != "" {
				t.Errorf("rules broken (-want +got):\n%s", diff)
			}
		})
	}
}
