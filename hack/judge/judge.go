package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Slack is the maximum age of a decision when it takes effect: the timeout of a manager's pass plus
// a late request.
const Slack = time.Minute + 30*time.Second

// stale is the maximum age of the Nodes on which a manager bases a grant. Its watch may have ended.
const stale = 5 * time.Minute

// requests is the maximum number of reboots of a node under one request: one for the request, and
// one for an earlier need.
const requests = 2

// vain is the maximum number of reboots for a need that comes back after each of them.
const vain = 2

// Options describes what the judge may rely on.
type Options struct {
	// TrueClocks means that the managers' clocks agree with the times of the records, so that the
	// age of a ledger entry is known.
	TrueClocks bool
	// Exact means that decisions are based on current data.
	Exact bool
	// Semaphore makes End check the whole history of grants with porcupine. Only for short
	// histories with limits that are numbers.
	Semaphore bool
}

// Judge takes in a history record by record. Create one with New.
type Judge struct {
	options  Options
	now      Change
	index    int64 // of the current record
	nodes    map[string]*node
	policies map[string]*policy
	// staged holds the machines on which an update waits.
	staged map[string]bool
	// returned counts how often in a row a machine's need came back after its reboot.
	returned map[string]int
	// governed counts the nodes of each policy. disrupted holds its disrupted nodes.
	governed  map[string]int
	disrupted map[string]map[string]*node
	// committed holds the boots that an agent may end, and until when. The time is zero while the
	// Node still reports the attempt.
	committed map[string]time.Time
	pods      map[string]*corev1.Pod // by UID
	budgets   map[string]*budget
	found     []Violation
}

// New returns a Judge with an empty history.
func New(o Options) *Judge {
	return &Judge{
		options: o, nodes: map[string]*node{}, policies: map[string]*policy{}, staged: map[string]bool{}, returned: map[string]int{}, governed: map[string]int{},
		disrupted: map[string]map[string]*node{}, committed: map[string]time.Time{}, pods: map[string]*corev1.Pod{}, budgets: map[string]*budget{},
	}
}

// Violations returns the violations found so far.
func (j *Judge) Violations() []Violation { return j.found }

// Take takes in one record.
func (j *Judge) Take(r Change) {
	j.now = r
	j.index++
	switch {
	case r.Policy != nil:
		j.takePolicy(r)
	case r.Node != nil:
		j.takeNode(r)
	case r.Budget != nil:
		j.takeBudget(r)
	case r.Pod != nil:
		j.takePod(r)
	case r.Host != "":
		j.takeHost(r)
	}
}

// ago returns the allowed age of the data behind a decision, which is zero if data is exact.
func (j *Judge) ago(d time.Duration) time.Duration {
	if j.options.Exact {
		return 0
	}
	return d
}

func (j *Judge) report(rule Rule, format string, args ...any) {
	j.found = append(j.found, Violation{At: j.now.At, Revision: j.now.Revision, Rule: rule, How: fmt.Sprintf(format, args...)})
}

// takeHost tracks which machines have an update staged, and checks each reboot.
func (j *Judge) takeHost(r Change) {
	if r.Host == Rebooted {
		j.rebooted(r)
	}
	switch delete(j.staged, r.Name); r.Host {
	case Staged:
		j.staged[r.Name], j.returned[r.Name] = true, 0
	case Returned:
		j.staged[r.Name] = true
		j.returned[r.Name]++
	default:
	}
}

func (j *Judge) rebooted(r Change) {
	requested, asked := j.nodes[r.Name].isRequested(), 0
	if requested {
		j.nodes[r.Name].asked++
		asked = j.nodes[r.Name].asked
		j.returned[r.Name] = 0
	}
	until, committed := j.committed[r.Boot]
	deleted := !until.IsZero() // its request and its staged update may be those of the deleted Node
	switch {
	case !committed || deleted && r.At.After(until):
		j.report(Granted, "%s is rebooted and ends boot %s, which no record of a grant names", r.Name, r.Boot)
	case asked > requests:
		j.report(Need, "%s is rebooted %d times for one request", r.Name, asked)
	case !j.staged[r.Name] && !requested && !deleted:
		j.report(Need, "%s is rebooted without a need", r.Name)
	case j.returned[r.Name] >= vain:
		j.report(Need, "%s is rebooted although its need has come back after %d reboots", r.Name, j.returned[r.Name])
	}
	j.goesDown(r)
}

func (j *Judge) takeBudget(r Change) {
	name := r.Budget.Namespace + "/" + r.Budget.Name
	if r.Gone {
		delete(j.budgets, name)
		return
	}
	selects, err := metav1.LabelSelectorAsSelector(r.Budget.Spec.Selector)
	if err != nil {
		selects = labels.Nothing()
	}
	b := j.budgets[name]
	if b == nil || b.selects.String() != selects.String() {
		b = &budget{selects: selects, available: map[string]time.Time{}, leave: map[string]bool{}}
		for uid, pod := range j.pods {
			if b.covers(r.Budget.Namespace, pod) && IsAvailable(pod) {
				b.available[uid] = r.At
			}
		}
		j.budgets[name] = b
	}
	b.minAvailable = int(r.Budget.Status.DesiredHealthy)
	if least := r.Budget.Spec.MinAvailable; least != nil && least.Type == intstr.Int {
		b.minAvailable = least.IntValue()
	}
	b.complete = b.complete || len(b.available) >= b.minAvailable
	for pod := range r.Budget.Status.DisruptedPods {
		b.leave[pod] = true
	}
	b.history = append(b.history[max(0, len(b.history)-recent+1):], shown(r.Revision, r.Budget))
}

func (j *Judge) takePod(r Change) {
	uid := string(r.Pod.UID)
	if j.pods[uid] = r.Pod; r.Gone {
		delete(j.pods, uid)
	}
	for _, name := range slices.Sorted(maps.Keys(j.budgets)) {
		namespace, _, _ := strings.Cut(name, "/")
		if b := j.budgets[name]; b.covers(namespace, r.Pod) {
			if broken := b.pod(name, r); broken != "" {
				j.report(Budget, "%s", broken)
			}
		}
	}
}

// End checks the final state. left describes what the feed found unfinished.
func (j *Judge) End(t time.Time, remaining ...string) {
	j.now = Change{At: t}
	for _, description := range remaining {
		j.report(Convergence, "%s", description)
	}
	j.found = append(j.found, j.LeftBehind(t)...)
	for _, name := range slices.Sorted(maps.Keys(j.staged)) {
		j.report(Need, "%s still needs its reboot", name)
	}
	for _, name := range slices.Sorted(maps.Keys(j.nodes)) {
		if j.nodes[name].isRequested() {
			j.report(Need, "node %s still has its request", name)
		}
	}
	if j.options.Semaphore {
		for _, name := range slices.Sorted(maps.Keys(j.policies)) {
			j.policies[name].grants.judge(j, name)
		}
	}
}

// LeftBehind returns what must not exist once everything is at rest: cordons other than an
// administrator's, the operator's taint, attempts, and ledger entries.
func (j *Judge) LeftBehind(t time.Time) []Violation {
	var found []Violation
	add := func(format string, args ...any) {
		found = append(found, Violation{At: t, Rule: Rest, How: fmt.Sprintf(format, args...)})
	}
	for _, name := range slices.Sorted(maps.Keys(j.nodes)) {
		n := j.nodes[name]
		if n.last == nil {
			continue
		}
		if n.last.Spec.Unschedulable && !n.cordoned {
			add("node %s is left cordoned", name)
		}
		for _, description := range Unfinished(n.last) {
			add("node %s %s", name, description)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(j.policies)) {
		if p := j.policies[name].last; p != nil && len(p.Status.Grants) > 0 {
			add("policy %s is left with grants %v", name, p.Status.Grants)
		}
	}
	return found
}

// goesDown judges the pods that go down with a machine that logind reboots. They are disrupted
// without an eviction, so their budgets must allow that, too.
func (j *Judge) goesDown(r Change) {
	for _, node := range slices.Sorted(maps.Keys(j.nodes)) {
		n := j.nodes[node]
		if n.last == nil || n.last.Status.NodeInfo.BootID != r.Boot || !n.now.committed || j.leavesPods(n) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(j.budgets)) {
			b := j.budgets[name]
			if lost := j.left(b, node, n.committed); len(lost) > 0 && b.complete && len(b.available)-len(lost)+b.involuntary < b.minAvailable {
				j.report(Budget, "pods %v of budget %s go down with node %s: %d are available, %d must be", lost, name, node, len(b.available), b.minAvailable)
			}
		}
	}
}

// left returns the available pods of a budget that were on a node well before its point of no
// return, and whose eviction the API server has not allowed.
func (j *Judge) left(b *budget, node string, committed time.Time) (names []string) {
	for uid, since := range b.available {
		if pod := j.pods[uid]; pod != nil && pod.Spec.NodeName == node && !b.leave[pod.Name] && committed.Sub(since) > cameBack {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

// leavesPods reports whether the policy of a node's attempt lets pods go down with the node: by its
// drain rules, or because it reboots nodes whose drain timed out.
func (j *Judge) leavesPods(n *node) bool {
	p := j.policies[n.now.policy]
	if p == nil || p.last == nil {
		return true
	}
	drain := p.last.Spec.DrainOrDefault()
	return drain.OnTimeoutOrDefault() == v1alpha1.DrainTimeoutReboot || len(drain.Rules) > 0
}
