package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// searchTime bounds porcupine's search of one run. Histories of a few dozen operations take milliseconds.
const searchTime = 20 * time.Second

// operation is one of the bounded semaphore that the limit is.
type operation struct {
	kind string // acquire, release or limit
	who  string
	// limit is the new one, of kind limit.
	limit int
}

type slots struct{ held, limit int }

// semaphore is the model: an acquire takes a slot that is free; a new limit takes none away.
var semaphore = porcupine.Model{
	Init: func() any { return slots{} },
	Step: func(state, input, _ any) (bool, any) {
		s, op := state.(slots), input.(operation) //nolint:forcetypeassert // what is put in below
		switch op.kind {
		case "acquire":
			return s.held < s.limit, slots{s.held + 1, s.limit}
		case "release":
			return s.held > 0, slots{s.held - 1, s.limit}
		}
		return true, slots{s.held, op.limit}
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(input, _ any) string { return fmt.Sprint(input) },
}

// notASemaphore asks porcupine whether the history of grants is one of a bounded semaphore: an order of its operations, each
// within its interval, in which no slot is taken that is not free. An acquire begins with the grant in the ledger and has
// happened when the node is cordoned under it; a release begins with the end of the disruption and has happened when the
// entry is gone from the ledger, or never if it was not seen to go. Revisions are the time.
func notASemaphore(h History) []Violation {
	operations := operationsOf(h)
	if result := porcupine.CheckOperationsTimeout(semaphore, operations, searchTime); result != porcupine.Ok {
		return []Violation{{0, "no bounded semaphore", fmt.Sprintf("porcupine says %s of %d operations: %s", result, len(operations), describe(operations))}}
	}
	return nil
}

// hold is what is known of one attempt: revisions, 0 where nothing was seen.
type hold struct{ granted, begun, ended, released int64 }

func operationsOf(h History) []porcupine.Operation {
	holds, order := holdsOf(h)
	var operations []porcupine.Operation
	add := func(op operation, call, done int64) {
		operations = append(operations, porcupine.Operation{ClientId: len(operations), Input: op, Call: 2 * call, Return: done})
	}
	last := -1
	for _, r := range h.Revisions {
		if r.Policy == nil || r.Deleted || limitOf(r.Policy) == last {
			continue
		}
		last = limitOf(r.Policy)
		add(operation{kind: "limit", limit: last}, r.Number, 2*r.Number+1)
	}
	for _, who := range order {
		k := holds[who]
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

// holds are the attempts that were seen, by key, in the order in which they were.
type holds struct {
	of        map[string]*hold
	order     []string
	disrupted map[string]string // by node, the attempt it is in
}

func holdsOf(h History) (map[string]*hold, []string) {
	seen := &holds{of: map[string]*hold{}, disrupted: map[string]string{}}
	for _, r := range h.Revisions {
		switch {
		case r.Policy != nil:
			seen.policy(r)
		case r.Node != nil:
			seen.node(r)
		}
	}
	return seen.of, seen.order
}

func (s *holds) get(who string) *hold {
	if s.of[who] == nil {
		s.of[who] = &hold{}
		s.order = append(s.order, who)
	}
	return s.of[who]
}

func (s *holds) policy(r Revision) {
	entries := map[string]bool{}
	for _, e := range r.Policy.Status.Grants {
		if r.Deleted {
			break
		}
		who := key(e.Node, e.Seq)
		entries[who] = true
		k := s.get(who)
		k.released = 0
		if k.granted == 0 {
			k.granted = r.Number
		}
	}
	for who, k := range s.of {
		if !entries[who] && k.granted > 0 && k.released == 0 {
			k.released = r.Number
		}
	}
}

func (s *holds) node(r Revision) {
	a, before, now := attemptOf(r.Node), s.disrupted[r.Node.Name], ""
	if a.disrupts && !r.Deleted {
		now = key(r.Node.Name, a.seq)
	}
	if before == now {
		return
	}
	if before != "" {
		s.get(before).ended = r.Number
	}
	if now != "" && s.get(now).begun == 0 {
		s.get(now).begun = r.Number
	}
	s.disrupted[r.Node.Name] = now
}

func describe(operations []porcupine.Operation) string {
	slices.SortFunc(operations, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var text strings.Builder
	for _, op := range operations {
		in, _ := op.Input.(operation)
		switch {
		case in.kind == "limit":
			fmt.Fprintf(&text, "\n    limit %d at %d", in.limit, op.Call/2)
		case op.Return == math.MaxInt64:
			fmt.Fprintf(&text, "\n    %s %s from %d on", in.kind, in.who, op.Call/2)
		default:
			fmt.Fprintf(&text, "\n    %s %s from %d to %d", in.kind, in.who, op.Call/2, op.Return/2)
		}
	}
	return text.String()
}
