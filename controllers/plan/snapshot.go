package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// Snapshot is everything a decision about one policy looks at, taken at one instant.
type Snapshot struct {
	Now time.Time
	// Policy is the policy to decide about; its status is the ledger as last read.
	Policy *v1alpha1.RebootPolicy
	// Governor knows every policy of the cluster.
	Governor Governor
	// Nodes are all nodes of the cluster: a node may be in the ledger and selected by another policy by now.
	Nodes []Node
	// Window is the state of the policy's windows at Now.
	Window window.State
	// Schedule tells it at any other instant; no plan looks at it, a forecast does.
	Schedule window.Schedule
	// WindowInvalid says what is wrong with windows or blackouts; then nothing is granted.
	WindowInvalid string
	// Gates are what the policy's gates said last. One that is missing has not been asked, or not lately.
	Gates []v1alpha1.GateStatus
}

// fleet is a snapshot sorted into what one policy has to do with each node.
type fleet struct {
	Snapshot
	name   string
	byName map[string]*Node
	// governed are the nodes this policy governs, by name.
	governed []*Node
	// conflicts are nodes that this policy and its rivals select, by node name.
	conflicts map[string][]string
	// controlPlane are all control-plane nodes of the cluster, by name.
	controlPlane []*Node
	// entries is the ledger, and orphans the nodes with a grant that is outstanding and that the ledger has lost.
	entries []v1alpha1.LedgerEntry
	inEntry map[string]bool
	orphans []*Node
	// limit, wrong and stands are facts about the whole policy that every check may ask for.
	limit  int32
	wrong  string
	stands Halt
	// question is what the agents of this policy's nodes are asked about pods.
	question string
	// spare is how much of a window has to be left to begin a reboot.
	spare time.Duration
	// places is the budget while nodes are chosen.
	places *budget
	// waitsForGates tells that a check has looked at the gates.
	waitsForGates bool
}

func newFleet(s Snapshot) *fleet {
	f := &fleet{
		Snapshot: s, name: s.Policy.Name, entries: s.Policy.Status.Grants,
		question: Question(s.Policy),
		byName:   make(map[string]*Node, len(s.Nodes)), conflicts: map[string][]string{}, inEntry: map[string]bool{},
	}
	for _, e := range f.entries {
		f.inEntry[e.Node] = true
	}
	for i := range s.Nodes {
		f.add(&s.Nodes[i])
	}
	slices.SortFunc(f.governed, byName)
	slices.SortFunc(f.controlPlane, byName)
	slices.SortFunc(f.orphans, func(a, b *Node) int { return cmp.Or(cmp.Compare(a.entry().Seq, b.entry().Seq), byName(a, b)) })
	f.limit, f.wrong = f.scale()
	f.stands, f.spare = f.halt(), f.reserve()
	return f
}

// scale turns maxUnavailable into nodes, and finds what is wrong with the policy.
func (f *fleet) scale() (limit int32, wrong string) {
	limit, err := Limit(f.Policy.Spec.MaxUnavailableOrDefault(), len(f.governed))
	if err != nil {
		wrong = err.Error()
	}
	return limit, cmp.Or(wrong, f.WindowInvalid, f.Governor.Invalid[f.name])
}

// invalid says what is wrong with the spec; admission should have refused it, and nothing is granted.
func (f *fleet) invalid() string { return f.wrong }

// paused tells whether the policy's pause is in force.
func (f *fleet) paused() bool {
	pause := f.Policy.Spec.Pause
	return pause != nil && (pause.Until == nil || f.Now.Before(pause.Until.Time))
}

// windowState: what a person did comes before the hours.
func (f *fleet) windowState() v1alpha1.WindowState {
	switch {
	case f.stands.Halted:
		return v1alpha1.WindowHalted
	case f.paused():
		return v1alpha1.WindowPaused
	case f.Window.Open && f.Window.Always:
		return v1alpha1.WindowAlways
	case f.Window.Open:
		return v1alpha1.WindowOpen
	}
	return v1alpha1.WindowClosed
}

func (f *fleet) dryRun() bool { return f.Policy.Spec.ModeOrDefault() == v1alpha1.ModeDryRun }

func (f *fleet) add(n *Node) {
	if n.farAhead(f.Policy.Status.Seq) && !f.inEntry[n.Name] {
		n = n.disbelieved()
	}
	f.byName[n.Name] = n
	g := f.Governor.Govern(n.Labels)
	switch {
	case g.Policy == f.name:
		f.governed = append(f.governed, n)
	case slices.Contains(g.Rivals, f.name):
		f.conflicts[n.Name] = g.Rivals
	}
	if n.ControlPlane {
		f.controlPlane = append(f.controlPlane, n)
	}
	if n.Outstanding() && !f.inEntry[n.Name] && f.answersFor(n, g) {
		f.orphans = append(f.orphans, n)
	}
}

// answersFor tells whether this policy has to see an outstanding grant to its end: the policy that gave it, or where that
// is not known any more, the one that governs the node. Else the node would keep its place for ever.
func (f *fleet) answersFor(n *Node, g Governance) bool {
	if n.Grant != nil && (n.Grant.Policy == f.name || f.Governor.knows(n.Grant.Policy)) {
		return n.Grant.Policy == f.name
	}
	return g.Policy == f.name
}

// held tells whether the node is in the middle of a reboot, under this policy or another.
func (f *fleet) held(n *Node) bool { return f.inEntry[n.Name] || n.Outstanding() }

func byName(a, b *Node) int { return cmp.Compare(a.Name, b.Name) }
