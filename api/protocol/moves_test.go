package protocol_test

import (
	"fmt"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// model is what is searched: so many policies, managers and nodes, and what each policy allows.
type model struct {
	policies, leaders, nodes int
	limit, grants            int
	// byHand lets somebody reboot a host at any time, behind everybody's back.
	byHand bool
	// restores lets somebody restore a machine to a snapshot of its previous boot, at any time. noLive takes away that the agent calls
	// logind only while its grant is in force.
	restores, noLive bool
	// refuses: logind may refuse for ever, and the agent gives up. A host goes down some time after logind has agreed. sameBoot: its boot
	// ID stays the same then. blind takes away that the agent asks logind whether the host is going down.
	refuses, sameBoot, blind bool
	// anew lets somebody delete each Node once, at any time; its kubelet registers it anew.
	anew bool
	// Each of these takes one guard of the protocol away.
	noNodeVersion, noLedgerVersion bool
	alsoReleasable                 func(protocol.Record, v1alpha1.LedgerEntry) bool
	publishesWhileBusy, renames    bool
	noUID, believesGone            bool

	// withdraws lets managers withdraw grants that the Node does not show, and adopt those that no ledger holds. And agents look whether
	// the ledger holds their grant. Without it agents begin unchecked, and nothing is withdrawn.
	withdraws bool
	// shared: the second policy, which has the second node, shares the limit of the first one, which has the first node. Its grants
	// are in that one's ledger. ownLedger takes that away: it counts what is in both ledgers, and writes its own.
	shared, ownLedger bool

	// breaks lets somebody write over the progress at any time, so that nobody can read it. repairsCommitted takes away that the agent
	// repairs nothing in the boot in which it may have called logind.
	breaks, repairsCommitted bool

	// cordons lets an administrator cordon and uncordon each Node at any time. untracked: not in an attempt, but without managedFields.
	// noOwner takes away that managedFields are read, and anyonesCordon that progress states whether the agent cordoned.
	cordons, untracked, noOwner, anyonesCordon bool

	// Each of these takes one guard of that away.
	noMark, noLook, noCheck, adoptsUnmarked bool

	memory *memory
}

// move is one atomic step of one process.
type move struct {
	who      string
	i        int
	does     string
	node     int
	seq      int
	ofPolicy int
}

func (m move) String() string {
	s := fmt.Sprintf("%s %d %s", m.who, m.i, m.does)
	if m.node >= 0 {
		s += fmt.Sprintf(" node %d", m.node)
	}
	if m.seq > 0 {
		s += fmt.Sprintf(" (number %d, policy %d)", m.seq, m.ofPolicy)
	}
	return s
}

// emit takes one move and the world after it.
type emit func(move, world)

// moves are all steps that anybody can make next.
func (m model) moves(w world, to emit) {
	for i := range m.leaders {
		m.readings(w, i, to)
		for p := range m.policies {
			if w.leaders[i].ledgers[p] == 0 {
				continue
			}
			for n := range m.nodes {
				if w.leaders[i].nodes[n] != 0 && m.sees(p, n) {
					m.manage(w, i, p, n, to)
				}
			}
		}
	}
	for n := range m.nodes {
		m.agent(w, n, to)
	}
}

// sees reports whether a manager finds entries of the node in the ledger, or gives some.
func (m model) sees(ledger, n int) bool {
	return !m.shared || m.ownLedger && ledger == n || !m.ownLedger && ledger == 0
}

// ledgers is how many of them have entries.
func (m model) ledgers() int {
	if m.shared && !m.ownLedger {
		return 1
	}
	return m.policies
}

// policyOf is the policy that gives a grant of the node in the ledger.
func (m model) policyOf(ledger, n int) int {
	if m.shared {
		return n
	}
	return ledger
}

// readings: a manager reads an object, or dies and forgets everything.
func (m model) readings(w world, i int, to emit) {
	b := w.leaders[i]
	for p := range m.ledgers() {
		if l := w.ledgers[p] | known; b.ledgers[p] != l {
			next := w
			next.leaders[i].learn(p, l)
			to(move{"manager", i, "reads the ledger", -1, 0, p}, next)
		}
	}
	for n := range m.nodes {
		if b.nodes[n]&^checked != w.nodes[n] {
			next := w
			next.leaders[i].nodes[n] = w.nodes[n]
			to(move{"manager", i, "reads", n, 0, 0}, next)
		}
		if m.withdraws && b.mayRelease(n, m.noMark) && b.nodes[n] != w.nodes[n]|checked {
			next := w
			next.leaders[i].nodes[n] = w.nodes[n] | checked
			to(move{"manager", i, "looks once more at", n, 0, 0}, next)
		}
	}
	if b != (belief{}) {
		next := w
		next.leaders[i] = belief{}
		to(move{"manager", i, "dies", -1, 0, 0}, next)
	}
}

// manage is all that a manager can do about one node, by what it has read.
func (m model) manage(w world, i, p, n int, to emit) {
	l, v := w.leaders[i].ledgers[p], w.leaders[i].nodes[n]
	seq := l.entrySeq(n)
	if seq == 0 {
		m.give(w, i, p, n, to)
		return
	}
	a := m.memory.manager(v&^(stale|checked), l, m.policyOf(p, n), p, n, !m.noUID)
	record := func(does string, guard answer, clears view) {
		if !guard.ok || v&stale != 0 && !m.noNodeVersion {
			return
		}
		next := w
		written := w.nodes[n].withGrant(guard.grant) &^ clears
		next.writeNode(n, written)
		next.leaders[i].nodes[n] = written
		to(move{"manager", i, does, n, seq, p}, next)
	}
	a.publish.ok = a.publish.ok || m.publishesWhileBusy && v.get(grantSeq) < seq
	record("publishes", a.publish, 0)
	if m.renames {
		a.cancel.grant.Policy = policyNames[p]
	}
	record("cancels", a.cancel, 0)
	record("finishes", a.finish, disturbed|m.undoes(v))
	gone := a.gone && (m.memory.manager(w.nodes[n]&^stale, l, m.policyOf(p, n), p, n, !m.noUID).gone || m.believesGone) // it looks once more
	withdrawn := (a.withdrawn || m.noMark && a.unpublished) && (v&checked != 0 || m.noLook)
	released := a.releasable || gone || withdrawn || m.alsoReleasable != nil && m.alsoReleasable(v.record(), l.of(n))
	if released && (l&stale == 0 || m.noLedgerVersion) {
		next := w
		m.putLedger(&next, i, p, w.ledgers[p].without(n))
		to(move{"manager", i, "releases", n, seq, p}, next)
	}
	// For how long a grant could not be published is nothing to the model: it may be withdrawn at any time.
	if m.withdraws && !m.noMark && l&stale == 0 && a.unpublished && l.withdrawn(n) == 0 {
		next := w
		m.putLedger(&next, i, p, w.ledgers[p].withdraw(n))
		to(move{"manager", i, "withdraws", n, seq, p}, next)
	}
}

// give enters a new grant. The planner looks at more than this before it grants; the limit must hold without it. Only
// where there are several policies, and so several ledgers, it relies on the planner for whether the node is free.
func (m model) give(w world, i, p, n int, to emit) {
	l, v := w.leaders[i].ledgers[p], w.leaders[i].nodes[n]
	if m.withdraws && l&stale == 0 {
		m.adopt(w, i, p, n, to)
	}
	seq := m.memory.nextSeq(l.seq(), v&^(stale|checked))
	granted := l.grants()
	if m.ownLedger {
		granted += w.leaders[i].ledgers[1-p].grants()
	}
	if granted >= m.limit || l&stale != 0 && !m.noLedgerVersion || m.policies > 1 && v.record().Outstanding() {
		return
	}
	// Without the compare-and-swap both managers' entries end up in the ledger.
	if seq = max(seq, w.ledgers[p].seq()+1); seq > m.grants {
		return
	}
	next := w
	m.putLedger(&next, i, p, w.ledgers[p].with(n, seq, v))
	to(move{"manager", i, "grants", n, seq, p}, next)
}

// adopt takes an outstanding grant into a ledger that does not hold it, whatever its limit.
func (m model) adopt(w world, i, p, n int, to emit) {
	v := w.leaders[i].nodes[n]
	r := v.record()
	if !r.Outstanding() || r.Grant == nil || v.grantor().ledger != p {
		return
	}
	e := protocol.Adopt(r, "n", instant)
	l := w.ledgers[p].with(n, int(e.Seq), v.with(boot, v.get(grantBoot)))
	l = l&^3 | ledger(max(w.ledgers[p].seq(), int(e.Seq)))
	if e.WithdrawnAt != nil && !m.adoptsUnmarked {
		l = l.withdraw(n)
	}
	next := w
	m.putLedger(&next, i, p, l)
	to(move{"manager", i, "adopts", n, int(e.Seq), p}, next)
}

func (m model) putLedger(w *world, i, p int, l ledger) {
	w.writeLedger(p, l)
	w.leaders[i].learn(p, l|known)
}

// learn takes in a ledger. What was read of Nodes is older.
func (b *belief) learn(p int, l ledger) {
	b.ledgers[p] = l
	for n := range b.nodes {
		b.nodes[n] &^= checked
	}
}

// mayRelease reports whether a ledger, as it is now, has an entry for the node that is withdrawn, or any.
func (b *belief) mayRelease(n int, unmarked bool) bool {
	for _, l := range b.ledgers {
		if l&stale == 0 && (l.withdrawn(n) != 0 || unmarked && l.entrySeq(n) != 0) {
			return true
		}
	}
	return false
}

// agent is all that can happen on one node.
func (m model) agent(w world, n int, to emit) {
	v, now := w.agents[n], w.nodes[n]
	if v&^checked != now {
		next := w
		next.agents[n] = now
		to(move{"agent", n, "reads its Node", -1, 0, 0}, next)
	}
	if m.byHand && now.get(boot) < lastBoot {
		to(move{"somebody", n, "reboots the host by hand", -1, 0, 0}, w.rebooted(n))
	}
	if m.restores && now.get(boot) > 1 {
		to(move{"somebody", n, "restores the machine to its previous boot", -1, 0, 0}, w.restored(n))
	}
	if m.anew && now.life() == 0 {
		to(move{"somebody", n, "deletes the Node, and its kubelet registers it anew", -1, 0, 0}, w.registeredAnew(n))
	}
	if m.breaks && now.get(progSeq) != 0 && now&unreadable == 0 {
		next := w
		next.writeNode(n, now|unreadable)
		to(move{"somebody", n, "writes over the progress", -1, 0, 0}, next)
	}
	if m.cordons && (!m.untracked || now&disturbed == 0) {
		does, after := "uncordons the Node", now&^(cordoned|anothers)
		if now&cordoned == 0 {
			does, after = "cordons the Node", now|cordoned|anothers
		}
		next := w
		next.writeNode(n, after)
		to(move{"an administrator of", n, does, -1, 0, 0}, next)
	}
	if v == 0 {
		m.goesDown(w, n, to)
		return
	}
	next := w
	next.agents[n] = 0
	to(move{"agent", n, "dies", -1, 0, 0}, next)
	if ledger := w.ledgers[v.grantor().ledger]; m.withdraws && v&(checked|stale) == 0 && m.memory.listed(v, ledger, n) {
		next := w
		next.agents[n] = v | checked
		to(move{"agent", n, "finds its grant in the ledger", -1, v.get(grantSeq), v.grantor().policy}, next)
	}
	m.act(w, n, to)
	// logind is asked by what the agent has read, which it confirms by a live reading. The boot is the host's own, and never stale. Once
	// logind is asked, the host goes down whatever is written over the progress.
	live := v.in(protocol.PhaseRebooting) && v.get(progSeq) == now.get(progSeq) && now.committed() &&
		(m.noLive || m.memory.mayCall(now&^unreadable, w.ledgers[now.grantor().ledger], n))
	switch {
	case !live || now.get(boot) >= lastBoot && !m.sameBoot:
	case m.refuses:
		next := w
		next.nodes[n] |= going
		to(move{"agent", n, "finds that logind agrees", -1, v.get(progSeq), 0}, next)
	default:
		to(move{"agent", n, "reboots its host", -1, v.get(progSeq), 0}, w.rebootedByAgent(n))
	}
	m.goesDown(w, n, to)
}

// goesDown: the host does what logind has agreed to.
func (m model) goesDown(w world, n int, to emit) {
	switch {
	case w.nodes[n]&going == 0:
	case m.sameBoot:
		next := w
		next.nodes[n], next.agents[n] = w.nodes[n]&^going|disturbed, 0
		to(move{"host", n, "is rebooted, and keeps its boot ID", -1, 0, 0}, next)
	default:
		to(move{"host", n, "is rebooted", -1, 0, 0}, w.rebootedByAgent(n))
	}
}

// act is what the agent can write.
func (m model) act(w world, n int, to emit) {
	v := w.agents[n]
	if v&stale != 0 && !m.noNodeVersion {
		return
	}
	a := m.memory.agent(v&^(stale|checked), w.nodes[n].get(boot), !m.repairsCommitted)
	a.start.ok = a.start.ok && (!m.withdraws || m.noCheck || v&checked != 0)
	write := func(does string, guard step, set, unset view) {
		if !guard.ok {
			return
		}
		next := w
		written := w.nodes[n].withProgress(guard.progress)&^unset | set
		next.writeNode(n, written)
		next.agents[n] = written
		to(move{"agent", n, does, -1, int(guard.progress.Seq), 0}, next)
	}
	write("starts", a.start, disturbed|cordoned, 0)
	if w.nodes[n].get(boot) < lastBoot { // the model has no more boots
		write("commits", a.commit, 0, 0)
	}
	write("aborts", a.abort, 0, disturbed|m.undoes(v))
	if m.refuses && (w.nodes[n]&going == 0 || m.blind) {
		write("gives up", a.retreat, 0, disturbed|m.undoes(v))
		if m.sameBoot { // what it takes for the proof may be wrong
			write("finds that its host has booted", a.noteBoot, 0, 0)
		}
	}
	if v.committed() {
		write("repairs", a.repair, 0, 0) // logind may have been called: the host still goes down
	} else {
		write("repairs", a.repair, 0, disturbed) // the cordon that stays uses maxUnavailable as any other
	}
}

// undoes is the cordon, where the end of an attempt undoes it.
func (m model) undoes(v view) view {
	undone, ok := m.memory.undone[v]
	if !ok {
		seen := v
		if m.anyonesCordon {
			seen |= own
		}
		if protocol.Uncordons(seen.node(!m.untracked && !m.noOwner)) {
			undone = cordoned
		}
		m.memory.undone[v] = undone
	}
	return undone
}

// committed reports whether the agent has passed the point of no return in this boot, as condition MaintenanceInProgress shows
// beside the record.
func (v view) committed() bool {
	return v.in(protocol.PhaseRebooting) && v.get(progBoot) == v.get(boot)
}

// rebooted is the world with a host up again on a new boot; its kubelet has reported it, its agent has read nothing yet.
func (w world) rebooted(n int) world {
	w.writeNode(n, w.nodes[n].with(boot, w.nodes[n].get(boot)+1)&^going)
	w.agents[n] = 0
	return w
}

// rebootedByAgent is the same where the agent has caused it, which must not happen outside the ledger.
func (w world) rebootedByAgent(n int) world {
	w = w.rebooted(n)
	w.nodes[n] |= disturbed
	return w
}

// restored is the world with a machine that runs its previous boot once more; its kubelet has reported it.
func (w world) restored(n int) world {
	w.writeNode(n, w.nodes[n].with(boot, w.nodes[n].get(boot)-1))
	w.agents[n] = 0
	return w
}

// registeredAnew is the world with a Node that has forgotten everything but what its kubelet reports of the host.
func (w world) registeredAnew(n int) world {
	w.writeNode(n, view(0).with(boot, w.nodes[n].get(boot))|reborn)
	return w
}

// memory remembers what the shipped functions answered. They are pure, so each is called once with the same arguments.
type memory struct {
	managers map[uint64]managerAnswers
	agents   map[uint64]agentAnswers
	calls    map[uint64]bool
	seqs     map[uint64]int
	undone   map[view]view
}

type answer struct {
	grant protocol.Grant
	ok    bool
}

type step struct {
	progress protocol.Progress
	ok       bool
}

type managerAnswers struct {
	publish, cancel, finish answer
	releasable, gone        bool
	unpublished, withdrawn  bool
}

type agentAnswers struct{ start, commit, abort, repair, retreat, noteBoot step }

func newMemory() *memory {
	return &memory{managers: map[uint64]managerAnswers{}, agents: map[uint64]agentAnswers{}, calls: map[uint64]bool{}, seqs: map[uint64]int{}, undone: map[view]view{}}
}

// manager is what one makes of the node and its entry, which a policy has given, in a ledger.
func (m *memory) manager(v view, l ledger, policy, p, n int, named bool) managerAnswers {
	key := uint64(v) | uint64(l.entry(n)|p<<4|l.life(n)<<5|l.withdrawn(n)<<6|policy<<7)<<32
	a, ok := m.managers[key]
	if !ok {
		r, e, holder := v.record(), l.of(n), policyNames[p]
		if policy != p {
			e.Policy = policyNames[policy]
		}
		if !named {
			e.NodeUID = r.UID // the entry is for whichever Node has the name
		}
		a.publish.grant, a.publish.ok = protocol.Publish(r, e, holder, instant)
		a.cancel.grant, a.cancel.ok = protocol.Cancel(r, e, holder, "", "", instant)
		a.finish.grant, a.finish.ok = protocol.Finish(r, e, holder, boots[v.get(boot)], instant)
		a.releasable = protocol.Releasable(r, e) || protocol.Overtaken(r, e, holder)
		a.gone = protocol.Gone(r, e)
		_, a.unpublished = protocol.Withdraw(r, e, instant)
		a.withdrawn = protocol.Withdrawn(r, e)
		m.managers[key] = a
	}
	return a
}

// agent is what one makes of its Node. shown: condition MaintenanceInProgress keeps it from a repair.
func (m *memory) agent(v view, host int, shown bool) agentAnswers {
	key := uint64(v) | uint64(host)<<32
	a, ok := m.agents[key]
	if !ok {
		r, id := v.record(), boots[host]
		a.start.progress, a.start.ok = protocol.Start(r, id, v&cordoned == 0, instant)
		a.commit.progress, a.commit.ok = protocol.Commit(r, id, instant)
		a.abort.progress, a.abort.ok = protocol.Abort(r, id, v1alpha1.ReasonCancelled, "", false, instant)
		a.repair.progress, a.repair.ok = protocol.Repair(r, id, "", shown && v.committed(), instant)
		a.retreat.progress, a.retreat.ok = protocol.Retreat(r, id, v1alpha1.ReasonRebootRefused, "", false, instant)
		a.noteBoot.progress, a.noteBoot.ok = protocol.NoteBoot(r, id)
		m.agents[key] = a
	}
	return a
}

// listed is what the agent makes of a ledger that it reads, where it could begin otherwise.
func (m *memory) listed(v view, l ledger, n int) bool {
	if l.entrySeq(n) == 0 || !m.agent(v, v.get(grantBoot), true).start.ok {
		return false
	}
	e := l.of(n)
	return protocol.Listed(v.record(), &e)
}

// mayCall reports whether the agent may call logind by the Node and the ledger.
func (m *memory) mayCall(v view, l ledger, n int) bool {
	key := uint64(v) | uint64(l.entry(n)|l.life(n)<<4)<<32
	may, ok := m.calls[key]
	if !ok {
		var entry *v1alpha1.LedgerEntry
		if l.entrySeq(n) != 0 {
			entry = new(l.of(n))
		}
		may = protocol.MayCall(v.record(), boots[v.get(boot)], entry)
		m.calls[key] = may
	}
	return may
}

func (m *memory) nextSeq(ledgerSeq int, v view) int {
	key := uint64(v) | uint64(ledgerSeq)<<32
	seq, ok := m.seqs[key]
	if !ok {
		seq = int(protocol.Enter(int64(ledgerSeq), v.record(), "n", boots[v.get(boot)], instant).Seq)
		m.seqs[key] = seq
	}
	return seq
}
