package slots

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Patience is the time for which an unavailable node may use up a limit before a person is told. Most
// repairs take less.
const Patience = time.Hour

// NoteHolders finds the shares that are used up by nodes which nobody reboots, once all nodes are
// counted.
func (s *Slots) NoteHolders(nodes []*record.Node) {
	last := record.LastReboot(s.Policy, s.Now)
	for _, share := range s.all() {
		share.noteHolders(nodes, last)
	}
}

// noteHolders notes the nodes that use up the share, and since when at the earliest.
func (s *share) noteHolders(nodes []*record.Node, earliest time.Time) {
	var names []string
	for name, why := range s.used {
		if why != holdsGrant {
			names = append(names, name)
		}
	}
	if s.limit == 0 || len(names) < s.limit {
		return
	}
	slices.Sort(names)
	var since []time.Time
	for _, n := range nodes {
		if _, holds := slices.BinarySearch(names, n.Name); holds {
			since = append(since, n.DownSince())
		}
	}
	slices.SortFunc(since, time.Time.Compare)
	if len(since) < s.limit {
		return
	}
	s.heldBy, s.heldSince = names, timing.Latest(since[s.limit-1], earliest)
}

// heldFor returns the time since which a node has waited for a slot that others hold without a
// reboot, or zero if none do. The node's condition shows when it began to wait for a slot.
func (s *share) heldFor(n *record.Node, now time.Time) time.Time {
	if len(s.heldBy) == 0 {
		return time.Time{}
	}
	return timing.Latest(n.ShowsSince(v1alpha1.ReasonBudgetExhausted, now), s.heldSince)
}

// stalled returns the message of a node that waits for nodes which nobody reboots.
func (s *share) stalled() string {
	uses := make([]string, len(s.heldBy))
	for i, name := range s.heldBy {
		uses[i] = name + " (" + s.used[name] + ")"
	}
	return fmt.Sprintf("%s; the limit is used up by %s: %s", strings.TrimPrefix(s.full, forItsTurn), message.Some(uses), s.remedy())
}

// remedy returns the advice and the command for the first of the nodes that use up the share.
func (s *share) remedy() string {
	first := s.heldBy[0]
	if s.used[first] == isCordoned {
		return "if nobody needs the cordon any more, run: kubectl uncordon " + first
	}
	return "repair it, or delete the Node if its machine is gone; look at it with: kubectl describe node " + first
}

// Unavailable is a node that is down or cordoned without a grant, and keeps others waiting.
type Unavailable struct {
	Node string
	// Why says how the node is unavailable.
	Why string
	// Since is the time when the node became unavailable, or zero if unknown.
	Since    time.Time
	Cordoned bool
	// Guarded is true if other control-plane nodes wait for this one, and it uses up no limit.
	Guarded bool
}

// Unavailable returns the nodes that keep others waiting without a grant, by name: those that use up
// a limit, and the control-plane nodes that guard others.
func (s *Slots) Unavailable(nodes []*record.Node, guards map[string]bool) []Unavailable {
	names := map[string]string{}
	for _, share := range s.all() {
		for _, name := range share.heldBy {
			names[name] = share.used[name]
		}
	}
	var all []Unavailable
	for _, n := range nodes {
		cause, limits := names[n.Name]
		if !limits && guards[n.Name] {
			cause = why(n)
		}
		if limits || guards[n.Name] {
			all = append(all, Unavailable{
				Node: n.Name, Why: cause, Since: n.DownSince(), Cordoned: n.Ready && !n.Deleting && n.Cordoned, Guarded: !limits,
			})
		}
	}
	slices.SortFunc(all, func(a, b Unavailable) int { return cmp.Compare(a.Node, b.Node) })
	return all
}
