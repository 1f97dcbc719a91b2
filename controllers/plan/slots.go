package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Limit returns maxUnavailable in nodes. A percentage of the selected nodes rounds down, to at
// least 1 and at most MaxGrants. 0, 0% and unreadable values allow none.
func Limit(maxUnavailable intstr.IntOrString, selected int) (int32, error) {
	if maxUnavailable.Type == intstr.Int {
		return max(maxUnavailable.IntVal, 0), nil
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(maxUnavailable.StrVal, "%"))
	if err != nil || !strings.HasSuffix(maxUnavailable.StrVal, "%") || percent < 0 || percent > 100 {
		return 0, fmt.Errorf("%q is not a percentage", maxUnavailable.StrVal)
	}
	if percent == 0 || selected == 0 {
		return 0, nil
	}
	return int32(min(max(selected*percent/100, 1), v1alpha1.MaxGrants)), nil
}

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

// all returns the shares of the policy, its shared limit and its rings.
func (s *slots) all() []*share {
	shares := []*share{&s.share}
	for _, other := range []*share{s.own, s.batch} {
		if other != nil {
			shares = append(shares, other)
		}
	}
	return slices.AppendSeq(shares, maps.Values(s.rings))
}

// shareOf returns a share without any slot taken. most is maxUnavailable as the user wrote it, and
// of says which nodes it counts.
func shareOf(limit int32, most intstr.IntOrString, of string) *share {
	return &share{
		limit: int(limit), used: map[string]string{}, none: "maxUnavailable is 0: no node may be rebooted",
		full: fmt.Sprintf(forItsTurn+"at most %s of the nodes%s may be unavailable at once", most.String(), of),
	}
}

// slots are the slots of maxUnavailable while nodes are chosen.
type slots struct {
	share

	// own is the share of the policy's own maxUnavailable, or nil if it has none besides the shared
	// limit.
	own *share
	// first tracks the beginning of the run under concurrency.firstBatch. batch is the share of the
	// first nodes, or nil if they do not limit the run.
	first firstBatch
	batch *share
	// rings are the shares of the rings that set maxUnavailable, by the ring's number.
	rings map[int]*share
	// domains are the topology domains in which nodes are being rebooted.
	domains map[string]bool
	// lastBack is the time when the last rebooted node was back in service, or zero if none was.
	lastBack time.Time
}

func slotsOf(f *fleet, reboots []underway.Reboot) *slots {
	s := &slots{share: *shareOf(f.limit, f.Ledger.Policy.Spec.MaxUnavailableOrDefault(), f.Ledger.Counted()), rings: map[int]*share{}, domains: map[string]bool{}}
	if f.own != nil {
		s.own = shareOf(*f.own, *f.Policy.Spec.OwnLimit(), " of policy "+f.name)
	}
	s.first = firstBatchOf(f, reboots)
	s.batch = s.first.share()
	for ring, limit := range f.rings.limits {
		is := f.rings.order[ring]
		s.rings[ring] = shareOf(limit, *is.MaxUnavailable, " of ring "+is.Name)
		s.rings[ring].none = fmt.Sprintf("maxUnavailable of ring %s is 0: no node of it may be rebooted", is.Name)
	}
	maps.Copy(s.used, f.others.down)
	for _, e := range f.entries.Others {
		s.share.grant(e.Node)
	}
	for _, n := range f.governed {
		s.count(n, f.rings.Of(n))
	}
	for name := range f.conflicts { // each of the rivals counts the node
		s.count(f.byName[name], f.rings.Of(f.byName[name]))
	}
	s.lastBack = lastBack(f)
	lost := map[string]bool{}
	for _, t := range reboots {
		lost[t.Entry.Node] = t.Lost()
		if t.Action != underway.ReleaseEntry {
			s.grant(t.Entry.Node, f.rings.Of(t.Node))
		} else {
			s.lastBack = timing.Latest(s.lastBack, t.BackAt())
		}
	}
	for _, n := range f.orphans {
		s.grant(n.Name, f.rings.Of(n))
	}
	for name, why := range s.used {
		if n := f.byName[name]; n != nil && why == holdsGrant && !lost[name] && f.keepsBusy(n) {
			s.domains[f.domain(n)] = true
		}
	}
	s.noteHolders(f)
	return s
}

// lastBack returns when the last rebooted node was back in service. It reads the status, and the
// Nodes in case the status was lost. It returns the zero time if none was, or if the policy has no
// spacing.
func lastBack(f *fleet) time.Time {
	if f.Policy.Spec.Spacing() == 0 {
		return time.Time{}
	}
	last := record.LastReboot(f.Policy, f.Now)
	for _, n := range f.selected {
		last = timing.Latest(last, n.FinishedAt(f.name, f.Now))
	}
	return last
}

// of returns the shares that a node of the ring takes a slot from.
func (s *slots) of(ring int) []*share {
	all := []*share{&s.share}
	if s.own != nil {
		all = []*share{s.own, &s.share}
	}
	if own := s.rings[ring]; own != nil {
		all = append(all, own)
	}
	if s.batch != nil {
		all = append(all, s.batch)
	}
	return all
}

// count counts a node of the ring if it is down or going down.
func (s *slots) count(n *record.Node, ring int) {
	if n.Outstanding() {
		s.use(n.Name, ring, holdsGrant)
	} else if n.Unavailable() {
		s.use(n.Name, ring, why(n))
	}
}

// use counts a node that is down or going down.
func (s *slots) use(node string, ring int, why string) {
	for _, share := range s.of(ring) {
		share.used[node] = why
	}
}

// grant counts an entry of the ledger.
func (s *slots) grant(node string, ring int) {
	for _, share := range s.of(ring) {
		share.grant(node)
	}
}

// grant counts an entry of the ledger.
func (s *share) grant(node string) {
	s.granted++
	s.used[node] = holdsGrant
}

// take gives the node a slot.
func (s *slots) take(node string, ring int, domain string) {
	s.grant(node, ring)
	s.domains[domain] = true
}

// never reports whether nodes of the ring can never get a slot.
func (s *slots) never(ring int) bool {
	return slices.ContainsFunc(s.of(ring), func(share *share) bool { return share.limit == 0 })
}

// hold reports whether the node holds a slot under a grant of any policy.
func (s *slots) hold(node string) bool { return s.used[node] == holdsGrant }

// budgetExhausted keeps reboots within maxUnavailable of the policy and of the node's ring. A node
// that is already down takes no new slot.
func budgetExhausted(c *choice, n *record.Node) *block.Block {
	if c.Ledger.Moved {
		return block.New(v1alpha1.ReasonBudgetExhausted, forItsTurn+"spec.concurrency.shared changed, and reboots of policy %s "+
			"still count against the limit of policy %s", c.name, c.Ledger.Policy.Name)
	}
	for _, share := range c.slots.of(c.rings.Of(n)) {
		if o := share.exhausted(n, c.Now); o != nil {
			return o
		}
	}
	return nil
}

// spaced makes the next reboot wait while the first nodes of the run soak, and for
// concurrency.spacing after a rebooted node is back in
// service. Gate answers are never older than the shortest spacing, so they reflect the time after
// that reboot.
func spaced(c *choice, _ *record.Node) *block.Block {
	if o := c.slots.first.waits(c); o != nil {
		return o
	}
	spacing := c.Policy.Spec.Spacing()
	until := c.slots.lastBack.Add(spacing)
	if spacing == 0 || c.slots.lastBack.IsZero() || !c.Now.Before(until) {
		return nil
	}
	return block.New(v1alpha1.ReasonSpacing, "waiting for its turn: the last rebooted node has been back since %s; the next reboot may start %s",
		c.instant(c.slots.lastBack), c.instant(until)).EndsAt(until)
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
		if o.StallsAt = since.Add(stallAfter); !now.Before(o.StallsAt) {
			o.Message, o.StallsAt = s.stalled(), time.Time{}
			o.Stall = &block.Stall{Nodes: s.heldBy, Message: o.Message, Since: since}
		}
	}
	return o
}

// crowdOut cancels grants that no agent has seen yet if other nodes have gone down since: hooks may
// have taken hours.
func crowdOut(f *fleet, reboots []underway.Reboot) {
	if !slices.ContainsFunc(reboots, underway.Reboot.Appears) {
		return
	}
	s := slotsOf(f, reboots)
	for i, t := range slices.Backward(reboots) { // the last grant gives up its slot to those before it
		if !t.Appears() {
			continue
		}
		o := s.crowded(f, t.Node)
		if reboots[i] = t.CrowdOut(o); o != nil {
			for _, share := range s.of(f.rings.Of(t.Node)) {
				delete(share.used, t.Node.Name)
			}
		}
	}
}

// crowded returns why a node that holds a grant would take down more nodes than the limit allows.
// It returns nil if it would not, or if the node is already down. Lowering a limit does not take
// grants back.
func (s *slots) crowded(f *fleet, n *record.Node) *block.Block {
	for _, other := range f.controlPlane {
		if n.ControlPlane && other != n && !other.Ready {
			return block.New(v1alpha1.ReasonControlPlaneGuard, "control-plane node %s is not Ready", other.Name)
		}
	}
	for _, share := range s.of(f.rings.Of(n)) {
		down := slices.DeleteFunc(slices.Sorted(maps.Keys(share.used)), func(name string) bool { return share.used[name] == holdsGrant })
		if len(share.used) > share.limit && len(down) > 0 && !n.Unavailable() {
			return block.New(v1alpha1.ReasonBudgetExhausted, "%s; %s %s", share.full, down[0], share.used[down[0]])
		}
	}
	return nil
}

// holders lists the nodes that use slots, for the policy's conditions.
func (s *slots) holders() string {
	names := make([]string, 0, len(s.used))
	for name, why := range s.used {
		names = append(names, name+" ("+why+")")
	}
	slices.Sort(names)
	return message.Some(names)
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

// controlPlaneGuard protects the quorum. It allows one control-plane node at a time, only while the
// others are Ready, and only if one policy governs all of them.
func controlPlaneGuard(c *choice, n *record.Node) *block.Block {
	if !n.ControlPlane {
		return nil
	}
	for _, other := range c.controlPlane {
		if other == n {
			continue
		}
		switch g := c.Governor.Govern(other); {
		case c.held(other) || c.slots.hold(other.Name):
			return block.New(v1alpha1.ReasonControlPlaneGuard, "control-plane node %s is being rebooted", other.Name)
		case !other.Ready:
			return block.New(v1alpha1.ReasonControlPlaneGuard, "control-plane node %s is not Ready", other.Name)
		case g.Policy != c.name:
			return block.New(v1alpha1.ReasonPolicyConflict, "one policy must govern all control-plane nodes; policy %s does not govern %s", c.name, other.Name)
		}
	}
	return nil
}
