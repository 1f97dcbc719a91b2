package protocol_test

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// world is one state of the search: what the API server holds, and what each process believes it
// holds. A resourceVersion is only compared with the newest one. So a read object has one bit
// instead, which says whether the object was written since. That keeps the number of states finite
// and small.
type world struct {
	ledgers [2]ledger
	nodes   [2]view
	leaders [2]belief
	agents  [2]view
}

// belief holds what one manager has read. An object that it has not read is zero.
type belief struct {
	ledgers [2]ledger
	nodes   [2]view
}

// stale marks a read object that was written since.
const stale = 1 << 15

// view is one Node: its grant, progress and boot, and whether its workload is disturbed (cordoned
// by the agent, or down). Boots count from 1, so the zero view means that the Node was not read.
type view uint32

const (
	grantSeq    = 0
	grantState  = 2
	grantBoot   = 4
	progSeq     = 6
	progPhase   = 8
	progBoot    = 10
	boot        = 12
	grantPolicy = 16
	reborn      = 1 << 18 // the Node was deleted and registered again
	// checked marks what was read. A manager's Node was read live after the ledger. An agent's Node
	// was followed by a read of the ledger that allows it to begin.
	checked   = 1 << 19
	disturbed = 1 << 14
	// unreadable means that somebody wrote over the progress. The bits of the progress still record
	// what the agent did.
	unreadable = 1 << 20
	// cordoned means that the Node is unschedulable, and anothers that an administrator cordoned
	// it. own means that according to the progress the agent did.
	cordoned = 1 << 21
	anothers = 1 << 22
	own      = 1 << 23
	// going means that logind is taking the host down. proved means that according to the progress
	// the host has rebooted under the same boot ID.
	going       = 1 << 24
	proved      = 1 << 25
	lastBoot    = 3
	freshlyMade = view(1 << boot)
)

func (v view) get(field int) int { return int(v>>field) & 3 }

func (v view) with(field, value int) view { return v&^(3<<field) | view(value)<<field }

var (
	states      = [...]protocol.GrantState{protocol.GrantActive, protocol.GrantCancelled, protocol.GrantFinished}
	phases      = [...]protocol.Phase{protocol.PhaseDraining, protocol.PhaseRebooting, protocol.PhaseAborted}
	policyNames = [...]string{"policy-0", "policy-1"}
	boots       = [...]string{"", "boot-1", "boot-2", "boot-3"}
	// uids are the UIDs of a Node before and after it was deleted and registered again.
	uids = [...]types.UID{"uid-1", "uid-2"}
	// instant is the time of every write in the search, because no guard of the protocol depends on
	// the time. Records do not accept times before the year 2000.
	instant = time.Unix(1<<30, 0)
)

func index[T comparable](of []T, value T) int {
	for i := range of {
		if of[i] == value {
			return i
		}
	}
	panic("a value outside the model")
}

// grantor identifies the policy that granted a reboot and the policy whose ledger holds the grant,
// by their numbers.
type grantor struct{ policy, ledger int }

// grantors are the possible grantors: each policy with its own ledger, and the second policy with
// the ledger of the first.
var grantors = [...]grantor{{0, 0}, {1, 1}, {1, 0}}

// names returns the names that the grant holds.
func (g grantor) names() (policy, ledger string) {
	if g.ledger != g.policy {
		ledger = policyNames[g.ledger]
	}
	return policyNames[g.policy], ledger
}

// grantor returns the grantor of the grant that the Node shows.
func (v view) grantor() grantor { return grantors[v.get(grantPolicy)] }

func (v view) grant() *protocol.Grant {
	if v.get(grantSeq) == 0 {
		return nil
	}
	policy, ledger := v.grantor().names()
	return &protocol.Grant{
		Policy: policy, Ledger: ledger, Seq: int64(v.get(grantSeq)), State: states[v.get(grantState)], BootID: boots[v.get(grantBoot)],
		At: metav1.NewTime(instant),
	}
}

func (v view) progress() *protocol.Progress {
	if v.get(progSeq) == 0 {
		return nil
	}
	return &protocol.Progress{
		Seq: int64(v.get(progSeq)), Phase: phases[v.get(progPhase)], BootID: boots[v.get(progBoot)],
		Cordoned: v&own != 0, Rebooted: v&proved != 0, At: metav1.NewTime(instant),
	}
}

// record returns the record as both halves of the protocol read it.
func (v view) record() protocol.Record {
	r := protocol.Record{Grant: v.grant(), UID: uids[v.life()]}
	if v&unreadable != 0 {
		r.ProgressErr = errUnreadable
	} else {
		r.Progress = v.progress()
	}
	return r
}

var errUnreadable = errors.New("no JSON")

// life is 1 for a Node that was registered again.
func (v view) life() int { return int(v>>18) & 1 }

func (v view) withGrant(g protocol.Grant) view {
	from := grantor{index(policyNames[:], g.Policy), index(policyNames[:], g.LedgerName())}
	v = v.with(grantSeq, int(g.Seq)).with(grantPolicy, index(grantors[:], from))
	return v.with(grantState, index(states[:], g.State)).with(grantBoot, index(boots[:], g.BootID))
}

func (v view) withProgress(p protocol.Progress) view {
	v &^= unreadable | own | proved
	if p.Cordoned {
		v |= own
	}
	if p.Rebooted {
		v |= proved
	}
	return v.with(progSeq, int(p.Seq)).with(progPhase, index(phases[:], p.Phase)).with(progBoot, index(boots[:], p.BootID))
}

// node returns the Node as a live read returns it, to check who cordoned it.
func (v view) node(tracked bool) *corev1.Node {
	node := &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: v&cordoned != 0}}
	if p := v.record().Progress; p != nil {
		node.Annotations = map[string]string{v1alpha1.AnnotationProgress: p.String()}
	}
	owner := v1alpha1.FieldOwnerAgent
	if v&anothers != 0 {
		owner = "kubectl"
	}
	if tracked {
		node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: owner, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)}}
	}
	return node
}

// in reports whether the Node shows an attempt in the phase.
func (v view) in(phase protocol.Phase) bool {
	return v.get(progSeq) != 0 && phases[v.get(progPhase)] == phase
}

// ledger is the ledger of one policy. It holds the highest number, and for each node the number,
// boot and life of its entry and whether the entry is withdrawn. Number 0 means that the node has
// no entry.
type ledger uint16

// known marks a ledger that was read, because an empty ledger is otherwise zero.
const known = 1 << 14

func (l ledger) seq() int           { return int(l & 3) }
func (l ledger) entry(n int) int    { return int(l>>(2+4*n)) & 15 }
func (l ledger) entrySeq(n int) int { return l.entry(n) & 3 }

func (l ledger) grants() int {
	return min(l.entrySeq(0), 1) + min(l.entrySeq(1), 1)
}

func (l ledger) life(n int) int { return int(l>>(10+n)) & 1 }

// withdrawn is 1 if the entry is withdrawn.
func (l ledger) withdrawn(n int) int { return int(l>>(12+n)) & 1 }

func (l ledger) withdraw(n int) ledger { return l | 1<<(12+n) }

func (l ledger) without(n int) ledger { return l &^ (15<<(2+4*n) | 1<<(10+n) | 1<<(12+n)) }

// with returns the ledger with an entry for the Node that was read.
func (l ledger) with(n, seq int, read view) ledger {
	return l.without(n)&^3 | ledger(seq) | ledger(seq|read.get(boot)<<2)<<(2+4*n) | ledger(read.life())<<(10+n)
}

func (l ledger) of(n int) v1alpha1.LedgerEntry {
	e := v1alpha1.LedgerEntry{Node: "n", NodeUID: uids[l.life(n)], Seq: int64(l.entrySeq(n)), BootID: boots[l.entry(n)>>2], At: metav1.NewTime(instant)}
	if l.withdrawn(n) != 0 {
		e.WithdrawnAt = &e.At
	}
	return e
}

// writeNode writes a Node. Every earlier read of it becomes stale.
func (w *world) writeNode(n int, v view) {
	w.nodes[n] = v
	for i := range w.leaders {
		if w.leaders[i].nodes[n] != 0 {
			w.leaders[i].nodes[n] |= stale
		}
	}
	if w.agents[n] != 0 {
		w.agents[n] |= stale
	}
}

// writeLedger writes the ledger of a policy. Every earlier read of it becomes stale.
func (w *world) writeLedger(p int, l ledger) {
	w.ledgers[p] = l
	for i := range w.leaders {
		if w.leaders[i].ledgers[p] != 0 {
			w.leaders[i].ledgers[p] |= stale
		}
	}
}

// hash returns the same value in each run, so that a failure can be repeated.
func (w world) hash() uint64 {
	views := func(v [2]view) uint64 { return uint64(v[0]) | uint64(v[1])<<32 }
	ledgers := func(l [2]ledger) uint64 { return uint64(l[0]) | uint64(l[1])<<16 }
	h := views(w.agents)
	for _, field := range [...]uint64{
		views(w.nodes), views(w.leaders[0].nodes), views(w.leaders[1].nodes),
		ledgers(w.leaders[0].ledgers) | ledgers(w.leaders[1].ledgers)<<32, ledgers(w.ledgers),
	} {
		h = (h ^ h>>29 ^ field) * 0x9e3779b97f4a7c15
	}
	return h ^ h>>32
}

func (w world) withLeadersSwapped() world {
	w.leaders[0], w.leaders[1] = w.leaders[1], w.leaders[0]
	return w
}

func (w world) withNodesSwapped() world {
	w.nodes[0], w.nodes[1] = w.nodes[1], w.nodes[0]
	w.agents[0], w.agents[1] = w.agents[1], w.agents[0]
	for p := range w.ledgers {
		w.ledgers[p] = w.ledgers[p].withNodesSwapped()
	}
	for i := range w.leaders {
		b := &w.leaders[i]
		b.nodes[0], b.nodes[1] = b.nodes[1], b.nodes[0]
		for p := range b.ledgers {
			b.ledgers[p] = b.ledgers[p].withNodesSwapped()
		}
	}
	return w
}

func (l ledger) withNodesSwapped() ledger {
	return l&(known|stale|3) | ledger(l.entry(0))<<6 | ledger(l.entry(1))<<2 | ledger(l.life(0))<<11 | ledger(l.life(1))<<10 |
		ledger(l.withdrawn(0))<<13 | ledger(l.withdrawn(1))<<12
}
