package plan

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Plan is everything decided about one policy from one snapshot.
type Plan struct {
	// Limit is maxUnavailable in nodes.
	Limit int32
	// Seq is the ledger's sequence number after this plan.
	Seq int64
	// Flights are the granted reboots and what is to be done about each, in the order of the ledger.
	Flights []Flight
	// Strays are reboots under a grant that names this policy, on nodes that neither its ledger holds nor its selector: they are
	// cancelled or finished like Flights, but take no slot and count as no failure. By node name.
	Strays []Flight
	// Granted and Adopted are new entries for the ledger; Adopted ones stand on Nodes already.
	Granted, Adopted []v1alpha1.LedgerEntry
	// Decisions say, for each node this policy answers for, what its condition RebootPermitted should be; by node name.
	Decisions []Decision
	// Marks are due changes of what nodes show schedulers and autoscalers, those first that come first.
	Marks []Mark

	// Window is windows, pause and halt in one word.
	Window  v1alpha1.WindowState
	Counts  v1alpha1.NodeCounts
	Blocked []v1alpha1.BlockedNodes
	// Agents is what is known of the nodes' agents. Nil: nothing yet.
	Agents *AgentsReport
	Halt   Halt
	// Invalid says what is wrong with the spec; then nothing is granted.
	Invalid string
	// Conflicts are nodes that this policy and its rivals select, by node name.
	Conflicts map[string][]string
	// Holders says who uses the budget.
	Holders string
	// WaitsForGates tells that nothing but gates, or a turn, keeps a node: they must be asked.
	WaitsForGates bool
	// Gates are what status.gates should be.
	Gates []v1alpha1.GateStatus
	// OldestPending is since when the longest-waiting node has needed its reboot; zero: none waits.
	OldestPending time.Time
	// Next is the instant at which time alone changes the answer; zero: never.
	Next time.Time

	// learned: Seq has grown by what stands on Nodes, and the ledger must know before more can be adopted.
	learned bool
}

// Decision is what condition RebootPermitted of one node should be. An empty Status means there should be none.
type Decision struct {
	Node    string
	Status  corev1.ConditionStatus
	Reason  v1alpha1.Reason
	Message string
	// Brief tells that the answer changes within seconds: the node need not be told.
	Brief bool
	// Preflight is what the node's agent should be asked about its pods: annotation preflight. Empty: nothing.
	Preflight string
}

// Reboots decides about one policy.
func Reboots(s Snapshot) Plan {
	p, _ := newFleet(s).reboots()
	return p
}

// InProgress decides about the granted reboots alone: of the plan, it is the Flights, the Strays and what holds for all nodes.
// It is little work beside Reboots, which also decides about every node that waits.
func InProgress(s Snapshot) Plan { return newFleet(s).inProgress() }

func (f *fleet) inProgress() Plan {
	p := Plan{Seq: f.Policy.Status.Seq, Halt: f.stands, Invalid: f.invalid(), Conflicts: f.conflicts}
	p.Limit, p.Window = f.limit, f.windowState()
	for _, e := range f.entries {
		p.Flights = append(p.Flights, f.flight(e))
	}
	for _, n := range f.strays {
		p.Strays = append(p.Strays, f.flight(f.entry(n)))
	}
	return p
}

// reboots also returns why each node waits, by its name.
func (f *fleet) reboots() (Plan, map[string]*Objection) {
	p := f.inProgress()
	f.adopt(&p)
	f.places = f.budget(p.Limit, p.Flights)
	objections := f.grant(&p)
	if f.dryRun() {
		f.places = f.budget(p.Limit, p.Flights) // nobody took the places that were given away
	}
	p.Holders = f.places.holders()
	p.Decisions, p.Marks = f.decisions(&p, objections), f.marks(objections)
	p.Counts, p.Blocked = f.count(&p, f.places)
	p.Agents = f.agents.report(f.selected)
	p.OldestPending = f.oldestPending(objections)
	waits := waitsForGates(&p, objections)
	p.WaitsForGates, p.Gates = waits && len(f.Policy.Spec.PrometheusGates()) > 0, f.gates(waits)
	p.Next = f.next(&p, objections)
	return p, objections
}

// UnderWay are the Flights and the Strays.
func (p *Plan) UnderWay() []Flight { return slices.Concat(p.Flights, p.Strays) }

// Ledger is the list of entries after the plan.
func (p *Plan) Ledger() []v1alpha1.LedgerEntry {
	var ledger []v1alpha1.LedgerEntry
	for _, t := range p.Flights {
		if t.Action != ReleaseEntry {
			ledger = append(ledger, t.Entry)
		}
	}
	ledger = append(ledger, p.Adopted...)
	return append(ledger, p.Granted...)
}

// LedgerChanges tells whether the ledger differs after the plan.
func (p *Plan) LedgerChanges() bool {
	withdraws := func(t Flight) bool { return t.Action == WithdrawGrant }
	return p.learned || len(p.Granted)+len(p.Adopted)+len(p.Released()) > 0 || slices.ContainsFunc(p.Flights, withdraws)
}

// Released are the flights whose entries leave the ledger.
func (p *Plan) Released() []Flight {
	var released []Flight
	for _, t := range p.Flights {
		if t.Action == ReleaseEntry {
			released = append(released, t)
		}
	}
	return released
}

// adopt takes outstanding grants back into a ledger that has lost them: after a new leader's first look, or when the status was
// lost. One that the agent has not begun is withdrawn, and so cancelled. The API server refuses new numbers above the limit: what
// does not fit is adopted once the ledger has learned its number, and counts against the budget until then.
func (f *fleet) adopt(p *Plan) {
	before, entries := p.Seq, len(f.entries)-len(p.Released())
	for _, n := range f.orphans {
		e := f.entry(n)
		p.Seq = max(p.Seq, e.Seq)
		if e.Seq > before && entries >= int(p.Limit) || entries >= v1alpha1.MaxGrants {
			p.learned = p.learned || e.Seq > before
			continue
		}
		entries++
		e.WithdrawnAt = Adopt(n.Record, n.Name, f.Now).WithdrawnAt
		f.inEntry[n.Name] = true
		p.Adopted = append(p.Adopted, e)
	}
}

// entry is the ledger entry that an outstanding record should have. A time that is further ahead than any clock may be is now:
// no deadline could count from it.
func (f *fleet) entry(n *Node) v1alpha1.LedgerEntry {
	e := n.entry(n.Name)
	if e.At.Sub(f.Now) > clockAhead {
		e.At = metav1.NewTime(f.Now)
	}
	return e
}

// Holds tells whether the node's record is the outstanding one of an entry that a ledger takes back.
func (n *Node) Holds(e v1alpha1.LedgerEntry) bool {
	if !n.Outstanding() {
		return false
	}
	own := n.entry(n.Name)
	return own.NodeUID == e.NodeUID && own.Seq == e.Seq && own.BootID == e.BootID
}

// grant chooses among the nodes that need a reboot, and says why each other one waits.
func (f *fleet) grant(p *Plan) map[string]*Objection {
	objections := map[string]*Objection{}
	var candidates []*Node
	for _, n := range f.governed {
		if !n.NeedsReboot() || f.held(n) {
			continue
		}
		if o := f.first(entry, n); o != nil {
			objections[n.Name] = o
			continue
		}
		candidates = append(candidates, n)
	}
	f.order(candidates)
	for _, n := range candidates {
		o := f.first(turn, n)
		if o == nil || o.check == v1alpha1.ReasonDryRun {
			f.takeSlot(n) // also where the policy only reports: the next node is judged as if this one were down
		}
		if o != nil {
			objections[n.Name] = o
			continue
		}
		p.Seq = NextSeq(p.Seq, n.Record)
		p.Granted = append(p.Granted, v1alpha1.LedgerEntry{
			Node: n.Name, NodeUID: n.UID, Seq: p.Seq, BootID: n.BootID, At: metav1.NewTime(f.Now), OSVersion: n.Labels[v1alpha1.LabelOSVersion],
		})
	}
	return objections
}

// Again decides once more about one entry, by a newer reading of its node; nil: there is none. Whether the policy has halted,
// which all nodes together say, is as the plan has it. The zero Flight: the ledger does not hold the entry.
func (p *Plan) Again(s Snapshot, n *Node, e v1alpha1.LedgerEntry) Flight {
	s.Nodes = nil
	if n != nil {
		s.Nodes = []*Node{n}
	}
	f := newFleet(s)
	f.stands = p.Halt
	for _, held := range f.entries {
		if held.Node == e.Node && held.Seq == e.Seq {
			return f.flight(held)
		}
	}
	for _, stray := range f.strays {
		if own := f.entry(stray); own.Seq == e.Seq {
			return f.flight(own)
		}
	}
	return Flight{}
}

// Objections is Reboots, and beside the plan why each node waits, by its name.
func Objections(s Snapshot) (Plan, map[string]*Objection) { return newFleet(s).reboots() }
