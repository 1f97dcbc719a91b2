package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Limit is maxUnavailable in nodes. A percentage of the selected nodes rounds down, to at least 1; 0 and 0% allow none.
// What cannot be read allows none either.
func Limit(maxUnavailable intstr.IntOrString, selected int) (int32, error) {
	if maxUnavailable.Type == intstr.Int {
		return max(maxUnavailable.IntVal, 0), nil
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(maxUnavailable.StrVal, "%"))
	if err != nil || !strings.HasSuffix(maxUnavailable.StrVal, "%") || percent < 0 || percent > 100 {
		return 0, fmt.Errorf("spec.concurrency.maxUnavailable: %q is no percentage", maxUnavailable.StrVal)
	}
	if percent == 0 || selected == 0 {
		return 0, nil
	}
	return int32(min(max(selected*percent/100, 1), v1alpha1.MaxGrants)), nil
}

// holdsGrant is why a node uses the budget that is being rebooted, by whichever policy.
const holdsGrant = "holds a grant"

// budget is how many nodes may still go down.
type budget struct {
	limit int
	// full says that every place is taken. It names no node: who holds the places changes with every reboot, and the message
	// would with it, on every waiting node. The policy's status names them.
	full string
	// used are the nodes that are down or going down: in the ledger, adopted, or unavailable for reasons of their own.
	used map[string]string
	// granted is how many entries the ledger has.
	granted int
	// domains are those in which nodes are being rebooted.
	domains map[string]bool
}

func (f *fleet) budget(limit int32, flights []Flight) *budget {
	asked := f.Policy.Spec.MaxUnavailableOrDefault()
	b := &budget{
		limit: int(limit), used: map[string]string{}, domains: map[string]bool{},
		full: fmt.Sprintf("waiting for its turn: at most %s of the nodes may be unavailable at once", asked.String()),
	}
	for _, n := range f.governed {
		if n.Outstanding() {
			b.used[n.Name] = holdsGrant
		} else if n.unavailable() {
			b.used[n.Name] = why(n)
		}
	}
	for _, t := range flights {
		if t.Action != ReleaseEntry {
			b.granted++
			b.used[t.Entry.Node] = holdsGrant
		}
	}
	for _, n := range f.orphans {
		b.granted++
		b.used[n.Name] = holdsGrant
	}
	dead := lost(flights)
	for name, why := range b.used {
		if why == holdsGrant && !dead[name] {
			b.domains[f.domain(f.byName[name])] = true
		}
	}
	return b
}

// takeSlot holds the node from then on.
func (f *fleet) takeSlot(n *Node) {
	f.inEntry[n.Name] = true
	f.places.granted++
	f.places.used[n.Name], f.places.domains[f.domain(n)] = holdsGrant, true
}

// budgetExhausted keeps reboots within maxUnavailable. A node that is down already takes no new place.
func budgetExhausted(f *fleet, n *Node) *Objection {
	b := f.places
	if b.granted >= b.limit || b.granted >= v1alpha1.MaxGrants {
		return b.exhausted()
	}
	if _, counted := b.used[n.Name]; !counted && len(b.used) >= b.limit {
		return b.exhausted()
	}
	return nil
}

func (b *budget) exhausted() *Objection {
	if b.limit == 0 {
		return objection(v1alpha1.ReasonBudgetExhausted, "maxUnavailable is 0: no node may be rebooted")
	}
	return &Objection{Reason: v1alpha1.ReasonBudgetExhausted, Message: b.full}
}

// holders says who uses the budget, for the policy's conditions.
func (b *budget) holders() string {
	names := make([]string, 0, len(b.used))
	for name, why := range b.used {
		names = append(names, name+" ("+why+")")
	}
	slices.Sort(names)
	return someOf(names)
}

func why(n *Node) string {
	switch {
	case n.Deleter != "":
		return "is being deleted by " + n.Deleter
	case n.Deleting:
		return "is being deleted"
	case !n.Ready:
		return "is not Ready"
	}
	return "is cordoned"
}

// place is what decides where a candidate stands in the line.
type place struct {
	node *Node
	// down tells that the node is unavailable already, and guarded that its drain could only end by its time-out.
	down, guarded bool
}

// order sorts candidates: nodes that were never served since they need a reboot before those that were; by domain; nodes that are down already first, for they cost nobody anything; those whose drain
// could only end by its time-out last, for they hold a slot longest; then those that have waited longest, so that nobody
// starves; control planes last among equals; then by name. There may be thousands: what is the same for two is looked at once
// for each, and most of all names, which are long, where all else is equal.
func (f *fleet) order(candidates []*Node) {
	line := make([]place, len(candidates))
	for i, n := range candidates {
		line[i] = place{node: n, down: n.unavailable(), guarded: f.guarded(n)}
	}
	slices.SortFunc(line, f.comparePlaces)
	for i, p := range line {
		candidates[i] = p.node
	}
}

func (f *fleet) comparePlaces(a, b place) int {
	if c := compareBools(a.node.served(), b.node.served()); c != 0 {
		return c
	}
	if c := f.compareDomains(a.node, b.node); c != 0 {
		return c
	}
	if c := cmp.Or(compareBools(b.down, a.down), compareBools(a.guarded, b.guarded)); c != 0 {
		return c
	}
	if c := a.node.WaitsSince().Compare(b.node.WaitsSince()); c != 0 {
		return c
	}
	if c := compareBools(a.node.ControlPlane, b.node.ControlPlane); c != 0 {
		return c
	}
	return cmp.Compare(a.node.Name, b.node.Name)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Domain is where a node is by the policy's topologyKey, its zone for example. Nodes without that label share a domain of their
// own, the empty one; without a topologyKey it is that of all nodes.
func Domain(policy *v1alpha1.RebootPolicy, n *Node) string {
	if key := policy.Spec.TopologyKey(); key != "" {
		return n.Labels[key]
	}
	return ""
}

func (f *fleet) domain(n *Node) string { return Domain(f.Policy, n) }

// compareDomains gives domains one order for all times, so that a fleet does not go to and fro between them; the nodes
// without the label come last.
func (f *fleet) compareDomains(a, b *Node) int {
	if f.Policy.Spec.TopologyKey() == "" {
		return 0
	}
	of, other := f.domain(a), f.domain(b)
	return cmp.Or(compareBools(of == "", other == ""), cmp.Compare(of, other))
}

// lost are the nodes that did not come back in time from their reboot, or went down in their drain and did not end it in time.
func lost(flights []Flight) map[string]bool {
	names := map[string]bool{}
	for _, t := range flights {
		down := t.Rebooting() || t.Node != nil && !t.Node.Ready
		names[t.Entry.Node] = down && !t.FailedAt.IsZero()
	}
	return names
}

// domainBusy keeps reboots within one domain at a time. A node that is down for reasons of its own, or did not come back,
// makes no domain busy: it uses maxUnavailable, and would else keep every other domain from ever being served.
func domainBusy(f *fleet, n *Node) *Objection {
	own := f.domain(n)
	others := slices.DeleteFunc(slices.Collect(maps.Keys(f.places.domains)), func(d string) bool { return d == own })
	if len(others) == 0 {
		return nil
	}
	return objection(v1alpha1.ReasonDomainBusy, "waiting for another domain: nodes with %s are being rebooted, and it is one domain at a time",
		f.domainLabel(slices.Min(others)))
}

func (f *fleet) domainLabel(domain string) string {
	key := f.Policy.Spec.TopologyKey()
	if domain == "" {
		return "no label " + key
	}
	return key + "=" + domain
}

// guard keeps a quorum: at most one control-plane node is ever granted, only while the others are Ready, and only when
// all of them fall under one policy.
func (f *fleet) guard(n *Node) *Objection {
	if !n.ControlPlane {
		return nil
	}
	for _, other := range f.controlPlane {
		if other == n {
			continue
		}
		if o := f.guardAgainst(other); o != nil {
			return o
		}
	}
	return nil
}

func (f *fleet) guardAgainst(other *Node) *Objection {
	g := f.Governor.Govern(other.Labels)
	switch {
	case f.held(other):
		return objection(v1alpha1.ReasonControlPlaneGuard, "control-plane node %s is being rebooted", other.Name)
	case !other.Ready:
		return objection(v1alpha1.ReasonControlPlaneGuard, "control-plane node %s is not Ready", other.Name)
	case g.Policy != f.name:
		return objection(v1alpha1.ReasonPolicyConflict, "all control-plane nodes must fall under one policy; %s does not fall under %s", other.Name, f.name)
	}
	return nil
}

// Queue is the nodes of one topology domain that need a reboot and hold no grant, in the order in which plans choose.
type Queue struct {
	// Domain is the value of the label topologyKey. Empty: the nodes without it, or there is no topologyKey.
	Domain string
	Nodes  []*Node
}

// Queues are the queues of the policy's domains, in the order in which plans choose among domains. The Nodes are those of
// the snapshot.
func Queues(s Snapshot) []Queue {
	f := newFleet(s)
	waiting := slices.DeleteFunc(slices.Clone(f.governed), func(n *Node) bool { return !n.NeedsReboot() || f.held(n) })
	f.order(waiting)
	var queues []Queue
	for _, n := range waiting {
		domain := f.domain(n)
		if last := len(queues) - 1; last < 0 || queues[last].Domain != domain {
			queues = append(queues, Queue{Domain: domain})
		}
		q := &queues[len(queues)-1]
		q.Nodes = append(q.Nodes, n)
	}
	return queues
}
