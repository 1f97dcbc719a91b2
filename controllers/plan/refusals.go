package plan

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/reboot-operator/reboot-operator/internal/message"
)

// Refusal is the answer with which the API server refused a write about a granted reboot. An admission policy or a webhook
// may refuse the writes to one Node alone.
type Refusal struct {
	Answer string
	// Since is when the first of the writes in a row was refused, and At when Answer came.
	Since, At time.Time
}

// text is the answer in one line of bounded length.
func (r Refusal) text() string {
	return message.Shorten(maxMessage, strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, r.Answer))
}

// Refused returns how many nodes hold a slot while the API server refuses the write that is due, and a message about them.
func (p *Plan) Refused() (nodes int, message string) {
	var others []string
	for _, t := range p.Reboots {
		switch {
		case t.Refused == "":
			continue
		case nodes == 0:
			message = fmt.Sprintf("node %s holds a slot since %s, and the API server refuses what the manager writes about its reboot: %s; %s",
				t.Entry.Node, instant(t.Entry.At.Time), t.Refused, t.keepsSlot())
		default:
			others = append(others, t.Entry.Node)
		}
		nodes++
	}
	if len(others) > 0 {
		message += "; the same holds for " + someOf(others)
	}
	return nodes, message
}

// keepsSlot states how long a node on which nothing can be written keeps its slot.
func (t Reboot) keepsSlot() string {
	switch {
	case t.Action == WithdrawGrant:
		return "the grant is withdrawn, and the slot is given back"
	case !t.Until.IsZero():
		return "the grant is withdrawn " + instant(t.Until) + ", and the slot is given back"
	}
	return "the slot is kept until the write is accepted or the Node is deleted"
}
