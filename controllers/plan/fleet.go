package plan

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Snapshot is everything a decision about one policy looks at, taken at one instant.
type Snapshot struct {
	Now time.Time
	// Policy is the policy to decide about; its status is the ledger as last read.
	Policy *v1alpha1.RebootPolicy
	// Ledger is the policy whose ledger has the entries of this one, as LedgerOf finds it. Nil: its own.
	Ledger *v1alpha1.RebootPolicy
	// Governor knows every policy of the cluster.
	Governor Governor
	// Nodes are all nodes of the cluster, in any order: a node may be in the ledger and selected by another policy by now. They
	// are shared with other snapshots: do not change them.
	Nodes []*Node
	// Window is the state of the policy's windows at Now.
	Window window.State
	// Schedule gives it at any other instant; no plan looks at it, a forecast does.
	Schedule window.Schedule
	// WindowInvalid states what is wrong with windows or blackouts; then nothing is granted.
	WindowInvalid string
	// GatesInvalid states which expression of gates.objects does not compile; then nothing is granted.
	GatesInvalid string
	// Gates are what the policy's gates reported last. One that is missing has not been asked, or not lately.
	Gates []v1alpha1.GateStatus
	// Agents are the pods of the agents. Nil: they have not been read yet.
	Agents *Agents
	// Refused are the last answers of the API server to writes about granted reboots that it refused, by node.
	Refused map[string]Refusal
	// RebootInterval is how long a node is back in service before another reboot of it may be granted. 0: no time.
	RebootInterval time.Duration
	// Unread are the nodes that could not be read live, where that is what releases an entry: they keep their slots.
	Unread map[string]bool
}

// fleet is a snapshot sorted into what one policy has to do with each node.
type fleet struct {
	Snapshot
	name string
	// byName are the nodes that are asked for by their names: those in the ledger, with a grant that is outstanding, and in
	// conflicts. Only a few of several thousand nodes.
	byName map[string]*Node
	// governed are the nodes this policy governs, without those at rest and in no order. There may be thousands, so only what is reported
	// of them is put in order.
	governed []*Node
	// selected are all nodes that this policy governs, with those at rest; agents counts their agents.
	selected []*Node
	agents   agentCount
	// conflicts are nodes that this policy and its rivals select, by node name.
	conflicts map[string][]string
	// withheld are nodes that this policy selects and an invalid one of higher priority governs, by the name of that one.
	withheld map[string][]string
	// controlPlane are all control-plane nodes of the cluster, by name.
	controlPlane []*Node
	// entries are those of this policy in its ledger, and inEntry the names of their nodes. orphans are the nodes with a grant that is
	// outstanding and that the ledger has lost.
	entries []v1alpha1.LedgerEntry
	inEntry map[string]bool
	orphans []*Node
	// inLedger are the names of the nodes with an entry of any policy in the same ledger.
	inLedger map[string]bool
	// limited is what else the limit counts.
	limited limited
	// unlisted are nodes with an outstanding grant that names this policy, in no ledger of its own, which it does not select. It
	// sees each to its end, and none of them costs it a slot.
	unlisted []*Node
	// numbers are those that records may have. believedFrom is when the first record of the future is believed, whoever governs its node:
	// its grant may be this policy's. Zero: there is none.
	numbers      numbers
	believedFrom time.Time
	// limit is maxUnavailable in nodes, of the policy whose limit counts. own is that of this policy, where it has one beside that.
	limit int32
	own   *int32
	// rings are those of spec.rings.
	rings ringed
	// gates are those that are asked.
	gates []policyGate
	// invalid states what is wrong with the spec; admission should have refused it, and nothing is granted. Empty: nothing is.
	invalid string
	halt    Halt
	// reserve is how much of a window has to be left to begin a reboot.
	reserve  time.Duration
	pods     podCheck
	attempts attempts
	// run is what the hooks of the run mean.
	run runHooks
}

// newFleet is the fleet of a snapshot. A nil halt is computed from all nodes of the snapshot.
func newFleet(s Snapshot, halt *Halt) *fleet {
	f := &fleet{
		Snapshot: s, name: s.Policy.Name, limited: limitedOf(s),
		reserve: Reserve(s.Policy), gates: gatesOf(&s.Policy.Spec), pods: podCheckOf(s.Policy), attempts: attempts{policy: s.Policy, now: s.Now, interval: s.RebootInterval},
		numbers: numbersOf(s), agents: agentCount{agents: s.Agents, now: s.Now},
		selected: make([]*Node, 0, len(s.Nodes)), byName: map[string]*Node{}, conflicts: map[string][]string{}, withheld: map[string][]string{}, inEntry: map[string]bool{},
		inLedger: map[string]bool{},
	}
	for _, e := range s.Holder().Status.Grants {
		f.inLedger[e.Node] = true
	}
	f.entries = f.limited.own
	for _, e := range f.entries {
		f.inEntry[e.Node] = true
	}
	if rings, err := ringedOf(s.Policy, s.Now); err != nil {
		f.invalid = err.Error()
	} else {
		f.rings = rings
	}
	for _, n := range s.Nodes {
		f.add(n)
	}
	slices.SortFunc(f.controlPlane, byName)
	slices.SortFunc(f.orphans, func(a, b *Node) int { return cmp.Or(cmp.Compare(f.entry(a).Seq, f.entry(b).Seq), byName(a, b)) })
	slices.SortFunc(f.unlisted, byName)
	if err := f.scale(); err != nil {
		f.invalid = "spec.concurrency.maxUnavailable: " + err.Error()
	}
	if err := f.rings.scale(); err != nil {
		f.invalid = err.Error()
	}
	f.invalid = cmp.Or(f.invalid, s.WindowInvalid, s.GatesInvalid, s.Governor.Invalid[f.name], s.Governor.chained[f.name])
	if halt == nil {
		halt = new(f.attempts.halt(f.governed, f.reboots()))
	}
	f.halt, f.run = *halt, f.runHooks()
	return f
}

// reboots are the granted reboots of the ledger, in its order.
func (f *fleet) reboots() []Reboot {
	reboots := slices.Grow([]Reboot(nil), len(f.entries))
	for _, e := range f.entries {
		reboots = append(reboots, f.reboot(e))
	}
	return reboots
}

// reboot decides about one entry.
func (f *fleet) reboot(e v1alpha1.LedgerEntry) Reboot {
	t := tracker{f: f, Reboot: Reboot{Entry: f.dated(e), Node: f.byName[e.Node], Action: Wait, Reason: v1alpha1.ReasonGranted}}
	t.track()
	if t.Action.WritesNode() {
		t.noteRefusal()
	}
	return t.Reboot
}

// paused reports whether the policy's pause is in force, and not ignored by spec.urgent.all.
func (f *fleet) paused() bool { return f.Policy.Spec.PausedAt(f.Now) }

// windowState is status.window: a halt and a pause come before windows.
func (f *fleet) windowState() v1alpha1.WindowState {
	switch {
	case f.halt.Halted:
		return v1alpha1.WindowHalted
	case f.paused():
		return v1alpha1.WindowPaused
	case f.Window.Urgent:
		return v1alpha1.WindowUrgent
	case f.Window.Open && f.Window.Always:
		return v1alpha1.WindowAlways
	case f.Window.Open:
		return v1alpha1.WindowOpen
	}
	return v1alpha1.WindowClosed
}

func (f *fleet) dryRun() bool { return f.Policy.Spec.ModeOrDefault() == v1alpha1.ModeDryRun }

func (f *fleet) add(n *Node) {
	if why, until := f.numbers.incredible(n, f.Now); why != "" && !f.inEntry[n.Name] {
		n = n.disbelieved(why)
		f.believedFrom = timing.Earliest(f.believedFrom, until)
	}
	held := f.held(n)
	if held {
		f.byName[n.Name] = n
	}
	g := f.Governor.Govern(n)
	switch {
	case g.Policy == f.name:
		f.govern(n, held)
	case slices.Contains(g.Rivals, f.name):
		f.byName[n.Name], f.conflicts[n.Name] = n, g.Rivals
	case g.IsOf(f.limited.with):
		f.limited.add(n, g, f.Governor.inLedger[n.Name])
	}
	if by := f.Governor.withholder(n, f.name); by != "" {
		f.withheld[by] = append(f.withheld[by], n.Name)
	}
	if n.ControlPlane {
		f.controlPlane = append(f.controlPlane, n)
	}
	if !n.Outstanding() || f.inLedger[n.Name] || f.Governor.inOther(n, f.limited.ledger) || !f.answersFor(n, g) {
		return
	}
	if g.Policy == f.name || f.selects(n) {
		f.orphans = append(f.orphans, n)
	} else {
		f.unlisted = append(f.unlisted, n)
	}
}

// govern counts a node that this policy governs, and keeps one of which there may be more to report.
func (f *fleet) govern(n *Node, held bool) {
	f.selected = append(f.selected, n)
	f.agents.add(n, held)
	if soaks := f.rings.add(n, f.Now); held || soaks || !n.atRest(f.maxUptime(n)) {
		f.governed = append(f.governed, n)
	}
}

// answersFor reports whether this policy has to see an outstanding grant to its end. The policy that gave it has to. Where that is not
// known any more, the one that governs the node has to. Otherwise the node would never release its slot.
func (f *fleet) answersFor(n *Node, g Governance) bool {
	if n.Grant != nil && (n.Grant.Policy == f.name || f.Governor.knows(n.Grant.Policy)) {
		return n.Grant.Policy == f.name
	}
	return g.Policy == f.name
}

// selects reports whether this policy selects the node, whichever policy governs it. A policy that is being deleted, which
// governs nothing, selects its nodes until it is gone.
func (f *fleet) selects(n *Node) bool {
	selector, err := f.Policy.Spec.NodeSelector.Selector()
	return err == nil && selector.Matches(labels.Set(n.Labels))
}

// scale reads maxUnavailable, once all nodes are counted.
func (f *fleet) scale() (err error) {
	if f.limited.elsewhere {
		f.limit, err = Limit(f.Policy.Spec.MaxUnavailableOrDefault(), len(f.selected))
		return err
	}
	if f.limit, err = Limit(f.limited.most, len(f.selected)+f.limited.selected); err != nil {
		return err
	}
	if own := f.Policy.Spec.OwnLimit(); own != nil {
		f.own = new(int32)
		*f.own, err = Limit(*own, len(f.selected))
	}
	return err
}

// sharedLimit is the limit of the ledger. That of a ledger which the spec does not name any more stays as it is.
func (f *fleet) sharedLimit() int32 {
	if f.Ledger != nil && f.limited.elsewhere {
		return f.Ledger.Status.Limit
	}
	return f.limit
}

// held reports whether the node is in the middle of a reboot, under this policy or another.
func (f *fleet) held(n *Node) bool {
	return n.Outstanding() || f.inLedger[n.Name]
}

// keepsBusy reports whether a node with a grant keeps its domain busy. One that another policy governs does not: only the limit is shared.
// The same goes for one that came here in its reboot, and that the policy which granted it reports as lost.
func (f *fleet) keepsBusy(n *Node) bool {
	if f.inEntry[n.Name] || slices.Contains(f.orphans, n) {
		return true
	}
	return f.Governor.Govern(n).Policy == f.name && !n.reportedLost()
}

func byName(a, b *Node) int { return cmp.Compare(a.Name, b.Name) }

// entry is the ledger entry that an outstanding record should have.
func (f *fleet) entry(n *Node) v1alpha1.LedgerEntry { return f.tagged(n.Entry(n.Name), n) }

// entryOf is the entry of a node in the policy's ledger. The zero entry: it has none.
func (f *fleet) entryOf(n *Node) (entry v1alpha1.LedgerEntry) {
	if i := slices.IndexFunc(f.entries, func(e v1alpha1.LedgerEntry) bool { return e.Node == n.Name }); i >= 0 {
		entry = f.entries[i]
	}
	return entry
}

// tagged is an entry of the node with what this policy's ledger has beside the record.
func (f *fleet) tagged(e v1alpha1.LedgerEntry, n *Node) v1alpha1.LedgerEntry {
	e.Policy, e.Ring = f.limited.tag(f.name), f.rings.name(n)
	return f.dated(e)
}

// dated is an entry whose time is now where it is further ahead than any clock may be: no deadline could count from it. The clock of the
// leader that wrote it was ahead.
func (f *fleet) dated(e v1alpha1.LedgerEntry) v1alpha1.LedgerEntry {
	if e.At.Sub(f.Now) > clockAhead {
		e.At = metav1.NewTime(f.Now)
	}
	return e
}

func (f *fleet) domain(n *Node) string { return Domain(f.Policy, n) }

// maxUptime is what annotation max-uptime of a governed node should be.
func (f *fleet) maxUptime(n *Node) string {
	if most := MaxUptime(&f.Policy.Spec, n.Name); most > 0 {
		return most.String()
	}
	return ""
}

// annotationsUntil is until when the autoscaler annotations stay on a node whose grant is over. Zero: the grant has left none.
func (f *fleet) annotationsUntil(n *Node) time.Time {
	g := n.Grant
	if g == nil || len(g.Annotations) == 0 {
		return time.Time{}
	}
	ended := g.At.Time
	if g.State == protocol.GrantActive && n.In(g.Seq, protocol.PhaseAborted) {
		_, ended = f.attempts.ended(n)
	}
	return ended.Add(f.Policy.Spec.AutoscalerGraceOrDefault())
}

// instant writes a time the way people read it in a status, in the zone of the policy's first window.
func (s Snapshot) instant(t time.Time) string { return timing.InstantIn(t, s.Schedule.Zone()) }
