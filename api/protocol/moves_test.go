package protocol_test

import (
	"fmt"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// model describes what is searched: the number of policies, managers and nodes, and the limits of
// each policy.
type model struct {
	policies, leaders, nodes int
	limit, grants            int
	// byHand lets somebody reboot a host at any time, outside the protocol.
	byHand bool
	// restores lets somebody restore a machine to a snapshot of its previous boot at any time.
	// noLive removes the rule that the agent calls logind only while its grant is in force.
	restores, noLive bool
	// refuses lets logind refuse for ever, so that the agent gives up. If logind agrees, the host
	// goes down some time later. With sameBoot the host keeps its boot ID. blind removes the rule
	// that the agent asks logind whether the host is going down.
	refuses, sameBoot, blind bool
	// recreated lets somebody delete each Node once at any time. Its kubelet then registers it again.
	recreated bool
	// Each of these removes one guard of the protocol.
	noNodeVersion, noLedgerVersion bool
	alsoReleasable                 func(protocol.Record, v1alpha1.LedgerEntry) bool
	publishesWhileBusy, renames    bool
	noUID, believesGone            bool

	// withdraws lets managers withdraw grants that the Node does not show, and adopt grants that no
	// ledger holds. Agents then check that the ledger holds their grant. Without it nothing is
	// withdrawn, and agents begin without that check.
	withdraws bool
	// shared gives each node its own policy and lets the second policy share the limit of the
	// first, so that all grants are in the ledger of the first. With ownLedger the second policy
	// counts the entries of both ledgers but writes its own.
	shared, ownLedger bool

	// breaks lets somebody make the progress unreadable at any time. repairsCommitted removes the
	// rule that the agent repairs nothing in the boot in which it may have called logind.
	breaks, repairsCommitted bool

	// cordons lets an administrator cordon and uncordon each Node at any time. With untracked
	// managedFields are missing, and the administrator does so only outside of an attempt. noOwner
	// ignores managedFields. anyonesCordon ignores whether the progress says that the agent
	// cordoned the node.
	cordons, untracked, noOwner, anyonesCordon bool

	// Each of these removes one guard of withdraws.
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

// emit is called with one move and the world after it.
type emit func(move, world)

// moves emits every step that any process can take next.
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

// sees reports whether a manager reads or writes entries of the node in the ledger.
func (m model) sees(ledger, n int) bool {
	return !m.shared || m.ownLedger && ledger == n || !m.ownLedger && ledger == 0
}

// ledgers returns the number of ledgers that have entries.
func (m model) ledgers() int {
	if m.shared && !m.ownLedger {
		return 1
	}
	return m.policies
}

// policyOf returns the policy that grants reboots of the node in the ledger.
func (m model) policyOf(ledger, n int) int {
	if m.shared {
		return n
	}
	return ledger
}

// readings emits the moves in which a manager reads an object, or dies and forgets everything.
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

// manage emits all that a manager can do about one node after what it has read.
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
	gone := a.gone && (m.memory.manager(w.nodes[n]&^stale, l, m.policyOf(p, n), p, n, !m.noUID).gone || m.believesGone) // by a second, live read
	withdrawn := (a.withdrawn || m.noMark && a.unpublished) && (v&checked != 0 || m.noLook)
	released := a.releasable || gone || withdrawn || m.alsoReleasable != nil && m.alsoReleasable(v.record(), l.of(n))
	if released && (l&stale == 0 || m.noLedgerVersion) {
		next := w
		m.putLedger(&next, i, p, w.ledgers[p].without(n))
		to(move{"manager", i, "releases", n, seq, p}, next)
	}
	// The model ignores how long a grant could not be published: it may be withdrawn at any time.
	if m.withdraws && !m.noMark && l&stale == 0 && a.unpublished && l.withdrawn(n) == 0 {
		next := w
		m.putLedger(&next, i, p, w.ledgers[p].withdraw(n))
		to(move{"manager", i, "withdraws", n, seq, p}, next)
	}
}

// give enters a new grant. The planner checks more than this before it grants, but the limit must
// hold without those checks. Only with several ledgers does the model rely on the planner to check
// that the node is free.
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
	// Without the compare-and-swap, the entries of both managers end up in the ledger.
	if seq = max(seq, w.ledgers[p].seq()+1); seq > m.grants {
		return
	}
	next := w
	m.putLedger(&next, i, p, w.ledgers[p].with(n, seq, v))
	to(move{"manager", i, "grants", n, seq, p}, next)
}

// adopt puts an outstanding grant into the ledger that should hold it, even beyond the limit.
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

// learn stores a ledger that was read. All earlier reads of Nodes are then older than the ledger.
func (b *belief) learn(p int, l ledger) {
	b.ledgers[p] = l
	for n := range b.nodes {
		b.nodes[n] &^= checked
	}
}

// mayRelease reports whether an up-to-date ledger has a withdrawn entry for the node, or any entry
// if unmarked.
func (b *belief) mayRelease(n int, unmarked bool) bool {
	for _, l := range b.ledgers {
		if l&stale == 0 && (l.withdrawn(n) != 0 || unmarked && l.entrySeq(n) != 0) {
			return true
		}
	}
	return false
}

// agent emits all that can happen on one node.
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
	if m.recreated && now.life() == 0 {
		to(move{"somebody", n, "deletes the Node, and its kubelet registers it again", -1, 0, 0}, w.registeredAgain(n))
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
	// The agent decides by what it has read, and confirms it by a live read. It always knows the
	// current boot of its host. Once logind has agreed, the host goes down even if somebody writes
	// over the progress.
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

// goesDown emits the reboot that logind has agreed to.
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

// act emits all that the agent can write.
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
		if m.sameBoot { // the proof by uptime may be wrong
			write("finds that its host has booted", a.noteBoot, 0, 0)
		}
	}
	if v.committed() {
		write("repairs", a.repair, 0, 0) // logind may have been called, so the host may still go down
	} else {
		write("repairs", a.repair, 0, disturbed) // the remaining cordon counts towards maxUnavailable like any other
	}
}

// undoes returns the flag of the cordon if the end of an attempt undoes the cordon, and 0
// otherwise.
func (m model) undoes(v view) view {
	undone, ok := m.memory.undone[v]
	if !ok {
		before := v
		if m.anyonesCordon {
			before |= own
		}
		if protocol.Uncordons(before.node(!m.untracked && !m.noOwner)) {
			undone = cordoned
		}
		m.memory.undone[v] = undone
	}
	return undone
}

// committed reports whether the agent has passed the point of no return in this boot, according to
// condition MaintenanceInProgress, which stays readable when the progress does not.
func (v view) committed() bool {
	return v.in(protocol.PhaseRebooting) && v.get(progBoot) == v.get(boot)
}

// rebooted returns the world after a reboot of the host: its kubelet has reported the new boot, and
// its agent has not read anything yet.
func (w world) rebooted(n int) world {
	w.writeNode(n, w.nodes[n].with(boot, w.nodes[n].get(boot)+1)&^going)
	w.agents[n] = 0
	return w
}

// rebootedByAgent returns the world after a reboot by the agent, which must not happen outside the
// ledger.
func (w world) rebootedByAgent(n int) world {
	w = w.rebooted(n)
	w.nodes[n] |= disturbed
	return w
}

// restored returns the world after a machine was restored to its previous boot, which its kubelet
// has reported.
func (w world) restored(n int) world {
	w.writeNode(n, w.nodes[n].with(boot, w.nodes[n].get(boot)-1))
	w.agents[n] = 0
	return w
}

// registeredAgain returns the world with a new Node that shows only what its kubelet reports of the
// host.
func (w world) registeredAgain(n int) world {
	w.writeNode(n, view(0).with(boot, w.nodes[n].get(boot))|reborn)
	return w
}

// memory caches the results of the shipped functions. They are pure, so each is called only once
// with the same arguments.
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

// manager returns what the manager's functions say about a node and its entry in a ledger. Unless
// named is set, the entry matches any Node of its name.
func (m *memory) manager(v view, l ledger, policy, p, n int, named bool) managerAnswers {
	key := uint64(v) | uint64(l.entry(n)|p<<4|l.life(n)<<5|l.withdrawn(n)<<6|policy<<7)<<32
	a, ok := m.managers[key]
	if !ok {
		r, e, holder := v.record(), l.of(n), policyNames[p]
		if policy != p {
			e.Policy = policyNames[policy]
		}
		if !named {
			e.NodeUID = r.UID // the entry matches any Node of the name
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

// agent returns what the agent's functions say about its Node. If shown is set, condition
// MaintenanceInProgress protects a committed reboot from a repair.
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

// listed reports whether the agent could begin, and finds its grant in the ledger that it reads.
func (m *memory) listed(v view, l ledger, n int) bool {
	if l.entrySeq(n) == 0 || !m.agent(v, v.get(grantBoot), true).start.ok {
		return false
	}
	e := l.of(n)
	return protocol.Listed(v.record(), &e)
}

// mayCall reports whether the agent may call logind according to the Node and the ledger.
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
