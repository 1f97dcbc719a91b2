package protocol_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/api/protocol"
)

// found is a search. It holds the worlds in the order of a breadth-first search, and the
// predecessor of each. Managers and nodes are interchangeable, so one world represents all worlds
// that differ only in their numbering.
type found struct {
	model  model
	worlds []world
	from   []uint32
	// wrong reports whether the last world violates a rule.
	wrong bool

	// table is an open-addressing hash table. It holds the index of each world, counted from 1, at
	// the first free place from the world's hash on.
	table []uint32
}

// search visits all worlds, or at most the given number if it is not 0. It stops at the first world
// that violates a rule, which it reaches by a shortest path.
func search(m model, most int) *found {
	m.memory = newMemory()
	s := &found{model: m, table: make([]uint32, 1<<10)}
	s.meet(m.start(), 0)
	for i := 0; i < len(s.worlds) && !s.wrong && (most == 0 || len(s.worlds) < most); i++ {
		m.moves(s.worlds[i], func(_ move, w world) { s.meet(w, i) })
	}
	return s
}

// start returns the world before the first grant. With two policies, the first one has already
// granted a reboot of another node, so that their numbers differ.
func (m model) start() world {
	var w world
	if !m.shared {
		w.ledgers[0] = ledger(m.policies - 1)
	}
	for n := range m.nodes {
		w.nodes[n] = freshlyMade
	}
	return w
}

// meet adds a world unless it was met before.
func (s *found) meet(w world, from int) {
	if s.wrong {
		return
	}
	w, hash := s.canonical(w)
	position := s.position(w, hash)
	if s.table[position] != 0 {
		return
	}
	s.worlds, s.from = append(s.worlds, w), append(s.from, uint32(from))
	s.table[position] = uint32(len(s.worlds))
	if 2*len(s.worlds) > len(s.table) {
		s.grow()
	}
	s.wrong = s.model.wrong(w) != ""
}

// canonical returns the world that represents w and all renumberings of it, and its hash. It is the
// one with the smallest hash.
func (s *found) canonical(w world) (world, uint64) {
	least, hash := w, w.hash()
	consider := func(other world) {
		if h := other.hash(); h < hash {
			least, hash = other, h
		}
	}
	if s.model.leaders == 2 {
		consider(w.withLeadersSwapped())
	}
	alike := s.model.nodes == 2 && !s.model.shared // with shared, each node has its own policy
	if alike {
		consider(w.withNodesSwapped())
	}
	if s.model.leaders == 2 && alike {
		consider(w.withNodesSwapped().withLeadersSwapped())
	}
	return least, hash
}

// position returns the index of the world in the table, or the free place for it.
func (s *found) position(w world, hash uint64) int {
	mask := len(s.table) - 1
	from := int(hash>>1) & mask
	for s.table[from] != 0 && s.worlds[s.table[from]-1] != w {
		from = (from + 1) & mask
	}
	return from
}

func (s *found) grow() {
	s.table = make([]uint32, 2*len(s.table))
	for i, w := range s.worlds {
		s.table[s.position(w, w.hash())] = uint32(i + 1)
	}
}

// wrong describes the rule that the world violates, or returns an empty string.
func (m model) wrong(w world) string {
	down := 0
	for n := range m.nodes {
		v := w.nodes[n]
		if v&(cordoned|anothers) == anothers {
			return fmt.Sprintf("the administrator's cordon of node %d is undone", n)
		}
		if v&disturbed == 0 {
			continue
		}
		down++
		entered := false
		for p := range m.policies {
			entered = entered || w.ledgers[p].entrySeq(n) == v.get(progSeq) && w.ledgers[p].life(n) == v.life()
		}
		if !entered {
			return fmt.Sprintf("node %d is disturbed outside the ledger", n)
		}
		if v.in(protocol.PhaseRebooting) && (v.get(grantSeq) != v.get(progSeq) || v.grant().State == protocol.GrantFinished) {
			return fmt.Sprintf("node %d is past the point of no return, and its grant can never be finished", n)
		}
	}
	if most := m.most(); down > most {
		return fmt.Sprintf("%d nodes are disturbed", down)
	}
	return ""
}

// most returns the largest number of nodes that may be disturbed: the sum of the limits, or the one
// limit that the policies share.
func (m model) most() int {
	if m.shared {
		return m.limit
	}
	return m.policies * m.limit
}

// path describes how the last world was reached, and the rule that it violates.
func (s *found) path() string { return s.pathTo(len(s.worlds) - 1) }

// pathTo describes how a world was reached. It repeats the moves from the start, so that managers
// and nodes keep their numbers.
func (s *found) pathTo(i int) string {
	var way []world
	for ; i > 0; i = int(s.from[i]) {
		way = append(way, s.worlds[i])
	}
	slices.Reverse(way)
	from, moves := s.model.start(), make([]string, 0, len(way))
	for _, to := range way {
		moves = append(moves, s.step(&from, to))
	}
	return fmt.Sprintf("%s after %d steps:\n  %s", s.model.wrong(from), len(way), strings.Join(moves, "\n  "))
}

// step makes the move that leads to a world equal to to, or to a renumbering of it.
func (s *found) step(before *world, to world) string {
	text, from := "", *before
	s.model.moves(from, func(m move, w world) {
		if like, _ := s.canonical(w); like == to && text == "" {
			text, *before = m.String(), w
		}
	})
	return text
}

// lost returns the index of a world that cannot return to rest, or -1 if every world can.
func (s *found) lost() int {
	back := make([]bool, len(s.worlds))
	for i, w := range s.worlds {
		back[i] = w.atRest()
	}
	for found := true; found; {
		found = false
		for i := len(s.worlds) - 1; i >= 0; i-- {
			if !back[i] && s.leads(s.worlds[i], back) {
				back[i], found = true, true
			}
		}
	}
	return slices.Index(back, false)
}

func (s *found) leads(w world, back []bool) bool {
	leads := false
	s.model.moves(w, func(_ move, next world) {
		next, hash := s.canonical(next)
		leads = leads || back[s.table[s.position(next, hash)]-1]
	})
	return leads
}

// atRest reports whether the ledgers are empty and all nodes are in service, without a cordon.
func (w world) atRest() bool {
	return w.ledgers[0].grants()+w.ledgers[1].grants() == 0 && (w.nodes[0]|w.nodes[1])&(disturbed|cordoned) == 0
}
