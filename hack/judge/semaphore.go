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

// searchTime bounds porcupine's search of one history. Those of a few dozen operations take milliseconds.
const searchTime = 20 * time.Second

// semaphore is the history of grants of one policy, as operations of a bounded semaphore. An order of them has to exist, each within
// its interval, in which no slot is taken that is not free. An acquire begins with the grant in the ledger and has happened when the
// node is cordoned under it. A release begins with the end of the disruption. It has happened when the entry is gone from the ledger,
// or never if it was not seen to go. Records are the time.
type semaphore struct {
	holds  map[string]*hold
	order  []string
	limits []operation
}

// hold is what is known of one attempt: records, 0 where nothing was seen.
type hold struct{ granted, begun, ended, released int64 }

// operation is one of the bounded semaphore that the limit is.
type operation struct {
	kind string // acquire, release or limit
	who  string
	// limit is the new one, at a record, of kind limit.
	limit int
	at    int64
}

type slots struct{ held, limit int }

// bounded is the model: an acquire takes a slot that is free; a new limit takes none away.
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

// ledger follows the entries; nil: the policy is gone, and its ledger with it.
func (s *semaphore) ledger(p *v1alpha1.RebootPolicy, index int64) {
	there := map[string]bool{}
	if p != nil {
		for _, e := range p.Status.Grants {
			who := key(e.Node, e.Seq)
			there[who] = true
			k := s.get(who)
			k.released = 0
			if k.granted == 0 {
				k.granted = index
			}
		}
	}
	for who, k := range s.holds {
		if !there[who] && k.granted > 0 && k.released == 0 {
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
			granted = k.begun // used before it was granted: it takes its slot at that very instant
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
