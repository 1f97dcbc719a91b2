package slots

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// holdsGrant is the cause in share.used for nodes that hold a grant, of any policy.
const holdsGrant = "holds a grant"

// share is the number of nodes that may be down at once, in the whole fleet or in one ring.
type share struct {
	limit int
	// full is the message if every slot is taken, and none the message if maxUnavailable is 0. They
	// name no node: the holders change with every reboot, and the messages of all waiting nodes
	// would change with them. The policy's status names the holders.
	full, none string
	// used are the nodes that are down or going down, with the cause: in the ledger, adopted, or
	// unavailable for another reason.
	used map[string]string
	// granted is the number of them that are in the ledger.
	granted int
	// heldBy are the nodes that use up the share without a reboot. heldSince is the time since
	// which they do, or zero if unknown.
	heldBy    []string
	heldSince time.Time
}

// forItsTurn is the beginning of the message of a node that waits for others.
const forItsTurn = "waiting for its turn: "

// shareOf returns a share without any slot taken. most is maxUnavailable as the user wrote it, and
// of says which nodes it counts.
func shareOf(limit int32, most intstr.IntOrString, of string) *share {
	return &share{
		limit: int(limit), used: map[string]string{}, none: "maxUnavailable is 0: no node may be rebooted",
		full: fmt.Sprintf(forItsTurn+"at most %s of the nodes%s may be unavailable at once", most.String(), of),
	}
}

// grant counts an entry of the ledger.
func (s *share) grant(node string) {
	s.granted++
	s.used[node] = holdsGrant
}

// exhausted returns why the node cannot take a slot of the share, or nil if it can.
func (s *share) exhausted(n *record.Node, now time.Time) *block.Block {
	_, counted := s.used[n.Name]
	switch {
	case s.granted < min(s.limit, v1alpha1.MaxGrants) && (counted || len(s.used) < s.limit):
		return nil
	case s.limit == 0:
		return &block.Block{Reason: v1alpha1.ReasonBudgetExhausted, Message: s.none}
	}
	o := &block.Block{Reason: v1alpha1.ReasonBudgetExhausted, Message: s.full}
	if since := s.heldFor(n, now); !since.IsZero() {
		if o.StallsAt = since.Add(Patience); !now.Before(o.StallsAt) {
			o.Message, o.StallsAt = s.stalled(), time.Time{}
			o.Stall = &block.Stall{Nodes: s.heldBy, Message: o.Message, Since: since}
		}
	}
	return o
}

func why(n *record.Node) string {
	switch {
	case n.Deleter != "":
		return "is being deleted by " + n.Deleter
	case n.Deleting:
		return "is being deleted"
	case !n.Ready:
		return "is not Ready"
	}
	return isCordoned
}

// isCordoned is the cause in share.used for nodes that somebody else has cordoned.
const isCordoned = "is cordoned"
