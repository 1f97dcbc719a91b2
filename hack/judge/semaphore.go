package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// searchTime limits porcupine's search of one history. A few dozen operations take milliseconds.
const searchTime = 20 * time.Second

// semaphore is the history of one policy's grants as operations of a bounded semaphore, with record
// numbers as times. Some order must exist, with each operation inside its interval, in which no
// slot is taken twice.
//
// An acquire begins when the grant enters the ledger, and has happened when the node is cordoned
// under it. A release begins when the disruption ends, and has happened when the entry has left the
// ledger, or at any later time if that was not seen.
type semaphore struct {
	holds  map[string]*hold
	order  []string
	limits []operation
}

// hold holds the record numbers of one attempt's events, or 0 for events that were not seen.
type hold struct{ granted, begun, ended, released int64 }

// operation is one operation of the bounded semaphore.
type operation struct {
	kind string // acquire, release or limit
	who  string
	// limit is the new limit from record at on, for kind limit.
	limit int
	at    int64
}

type slots struct{ held, limit int }

// bounded is the model: an acquire needs a free slot, and a lower limit revokes none.
var bounded = porcupine.Model{
	Init: func() any { return slots{} },
	Step: func(state, input, _ any) (bool, any) {
		s, op := state.(slots), input.(operation)
		switch op.kind {
		case "acquire":
			return s.held < s.limit, slots{s.held + 1, s.limit}
		case "release":
			return s.held > 0, slots{s.held - 1, s.limit}
		}
		return true, slots{s.held, op.limit}
	},
	Equal: func(a, b any) bool { return a == b },
}

func (s *semaphore) get(who string) *hold {
	if s.holds == nil {
		s.holds = map[string]*hold{}
	}
	if s.holds[who] == nil {
		s.holds[who] = &hold{}
		s.order = append(s.order, who)
	}
	return s.holds[who]
}

func (s *semaphore) limit(most int, index int64) {
	s.limits = append(s.limits, operation{kind: "limit", limit: most, at: index})
}

// ledger tracks the entries. A nil policy means that it is gone together with its ledger.
func (s *semaphore) ledger(p *v1alpha1.RebootPolicy, index int64) {
	ok := map[string]bool{}
	if p != nil {
		for _, e := range p.Status.Grants {
			who := key(e.Node, e.Seq)
			ok[who] = true
			k := s.get(who)
			k.released = 0
			if k.granted == 0 {
				k.granted = index
			}
		}
	}
	for who, k := range s.holds {
		if !ok[who] && k.granted > 0 && k.released == 0 {
			k.released = index
		}
	}
}

func (s *semaphore) begun(who string, index int64) {
	if k := s.get(who); k.begun == 0 {
		k.begun = index
	}
}

func (s *semaphore) ended(who string, index int64) {
	if k := s.holds[who]; k != nil && k.begun > 0 {
		k.ended = index
	}
}

func (s *semaphore) judge(j *Judge, policy string) {
	operations := s.operations()
	if result := porcupine.CheckOperationsTimeout(bounded, operations, searchTime); result != porcupine.Ok {
		j.report(Semaphore, "policy %s: porcupine reports %s for %d operations: %s", policy, result, len(operations), describe(operations))
	}
}

func (s *semaphore) operations() []porcupine.Operation {
	var operations []porcupine.Operation
	add := func(op operation, call, done int64) {
		operations = append(operations, porcupine.Operation{ClientId: len(operations), Input: op, Call: 2 * call, Return: done})
	}
	for _, l := range s.limits {
		add(l, l.at, 2*l.at+1)
	}
	for _, who := range s.order {
		k := s.holds[who]
		if k.begun == 0 {
			continue // never used
		}
		granted := k.granted
		if granted == 0 || granted > k.begun {
			granted = k.begun // used before it was granted: it takes its slot in that instant
		}
		add(operation{kind: "acquire", who: who}, granted, 2*k.begun+1)
		if k.ended == 0 {
			continue
		}
		released := int64(math.MaxInt64)
		if k.released >= k.ended {
			released = 2*k.released + 1
		}
		add(operation{kind: "release", who: who}, k.ended, released)
	}
	return operations
}

func describe(operations []porcupine.Operation) string {
	slices.SortFunc(operations, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var text strings.Builder
	for _, op := range operations {
		fmt.Fprintf(&text, "\n    %+v, from %d to %d", op.Input, op.Call/2, op.Return/2)
	}
	return text.String()
}
