package judge

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// longestShutdown is the longest time a machine may take to go down if its Node was deleted past
// the point of no return. Its agent may be paused.
const longestShutdown = 15 * time.Minute

// node tracks one node.
type node struct {
	last *corev1.Node
	// governor is the policy that selects the node, since the time governed. It is empty if none or
	// several do.
	governor string
	governed time.Time
	// formerly maps policies that used to govern the node to the time when that ended.
	formerly map[string]time.Time
	// down reports whether the node is unavailable, and turned is the time when that last changed.
	down   bool
	turned time.Time
	// cordoned means that an administrator set the present cordon.
	cordoned bool
	// needs tracks since when the node has needed a reboot.
	needs needs
	// urgentUntil is the time when an urgent request was withdrawn, or zero.
	urgentUntil time.Time
	// labelled is the time when the labels last changed.
	labelled time.Time
	// asked counts the reboots under the present request of an administrator.
	asked int
	// now is the current attempt. by is the policy under whose ledger the node is disrupted, or
	// empty.
	now attempt
	by  string
	// committed is the time when the attempt passed the point of no return.
	committed time.Time
	// carried maps the grants that the node has shown to the time when it last showed them.
	carried map[string]time.Time
}

// needs holds since when a node has needed a reboot, the value before that, and the time of the
// change. Zero times mean that it needed none.
type needs struct {
	since, before, changed time.Time
}

// take takes in the current state of the node. After a reboot that did not end the need, the need
// counts from that reboot.
func (n *needs) take(node *corev1.Node, t time.Time) {
	var since time.Time
	if c := v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootRequired); c.Status == corev1.ConditionTrue {
		since = c.LastTransitionTime.Time
	}
	grant, err := protocol.ParseGrant(node.Annotations)
	if err == nil && grant != nil && grant.State == protocol.GrantFinished && !since.IsZero() && !grant.At.Time.Before(since) {
		since = grant.At.Time
	}
	if !since.Equal(n.since) {
		n.since, n.before, n.changed = since, n.since, t
	}
}

// isRequested reports whether a reboot is requested.
func (n *node) isRequested() bool {
	if n == nil || n.last == nil {
		return false
	}
	_, requested := v1alpha1.RebootRequested(n.last)
	return requested
}

// isDown reports whether a node is not Ready, is cordoned, or is being deleted.
func isDown(n *corev1.Node) bool {
	return v1alpha1.NodeCondition(n.Status.Conditions, corev1.NodeReady).Status != corev1.ConditionTrue || n.Spec.Unschedulable || n.DeletionTimestamp != nil
}

func (n *node) turn(down bool, t time.Time) {
	if n.down != down {
		n.down, n.turned = down, t
	}
}

// isUrgent reports whether an urgent reboot is requested.
func (n *node) isUrgent() bool {
	if n.last == nil {
		return false
	}
	_, urgent := v1alpha1.UrgentlyRequested(n.last)
	return urgent
}

// shows returns the ledger of the grant on the node if it has this sequence number, or "".
func (n *node) shows(seq int64) string {
	if n.last == nil {
		return ""
	}
	if grant, err := protocol.ParseGrant(n.last.Annotations); err == nil && grant != nil && grant.Seq == seq {
		return grant.LedgerName()
	}
	return ""
}

// attempt is the work of an agent under one grant. It disrupts the node from the cordon until the
// manager has finished the grant or the agent has given up. A newer grant does not end a drain;
// only the agent can.
type attempt struct {
	// ledger is the policy whose ledger has the grant, and policy the one that granted it. Both are
	// empty if the grant cannot be read.
	ledger   string
	policy   string
	seq      int64
	boot     string
	disrupts bool
	// superseded means that a newer grant is on the node.
	superseded bool
	// committed means that the attempt is past the point of no return, under a grant in force.
	committed bool
}

func attemptOf(n *corev1.Node) attempt {
	progress, err := protocol.ParseProgress(n.Annotations)
	if err != nil || progress == nil {
		return attempt{}
	}
	a := attempt{seq: progress.Seq, boot: progress.BootID}
	if progress.Phase == protocol.PhaseAborted {
		return a
	}
	a.disrupts = true
	if grant, err := protocol.ParseGrant(n.Annotations); err == nil && grant != nil {
		a.ledger, a.policy, a.superseded = grant.LedgerName(), grant.Policy, grant.Seq > progress.Seq
		finished := grant.Seq == progress.Seq && grant.State == protocol.GrantFinished
		a.disrupts = progress.Phase == protocol.PhaseDraining || !a.superseded && !finished
	}
	a.committed = progress.Phase == protocol.PhaseRebooting && inForce(n, progress)
	return a
}

// inForce reports whether a Node shows the active grant of an attempt.
func inForce(n *corev1.Node, progress *protocol.Progress) bool {
	grant, err := protocol.ParseGrant(n.Annotations)
	return err == nil && grant != nil && grant.Seq == progress.Seq && grant.State == protocol.GrantActive
}

// key names one attempt of one node.
func key(node string, seq int64) string { return fmt.Sprintf("%s/%d", node, seq) }

func (j *Judge) nodeOf(name string) *node {
	if j.nodes[name] == nil {
		j.nodes[name] = &node{carried: map[string]time.Time{}, formerly: map[string]time.Time{}}
	}
	return j.nodes[name]
}

func (j *Judge) takeNode(r Change) {
	n := j.nodeOf(r.Name)
	before := n.last
	if n.isUrgent() {
		n.urgentUntil = r.At
	}
	if n.last = r.Node; r.Gone {
		if n.now.committed && n.now.disrupts {
			j.committed[n.now.boot] = r.At.Add(longestShutdown)
		}
		j.ends(r.Name, n, n.now.seq)
		n.last, n.cordoned, n.asked, n.now = nil, false, 0, attempt{}
		n.turn(false, r.At)
		j.govern(n)
		j.relimit()
		return
	}
	if before == nil || !maps.Equal(before.Labels, r.Node.Labels) {
		n.labelled = r.At
		j.govern(n)
		j.relimit()
	}
	if grant, err := protocol.ParseGrant(r.Node.Annotations); err == nil && grant != nil {
		n.carried[grant.LedgerName()+" "+key(r.Name, grant.Seq)] = r.At
	}
	n.turn(isDown(r.Node), r.At)
	n.needs.take(r.Node, r.At)
	if !n.isRequested() {
		n.asked = 0
	}
	j.cordon(r, n, before)
	j.follow(r, n)
}

// cordon tracks whether the present cordon is an administrator's.
func (j *Judge) cordon(r Change, n *node, before *corev1.Node) {
	was := before != nil && before.Spec.Unschedulable
	switch current := r.Node.Spec.Unschedulable; {
	case current == was:
	case r.By == Admin:
		n.cordoned = current
	case current:
		n.cordoned = false
	case n.cordoned:
		j.report(Ownership, "%s uncordons node %s, which an administrator has cordoned", r.By, r.Name)
		n.cordoned = false
	}
}

// follow tracks the attempts of a node, and checks each one that begins.
func (j *Judge) follow(r Change, n *node) {
	was, current := n.now, attemptOf(r.Node)
	n.now = current
	switch {
	case current.committed:
		j.committed[current.boot] = time.Time{}
	default:
		delete(j.committed, current.boot)
	}
	if current.committed && (!was.committed || was.seq != current.seq) {
		n.committed = r.At
	}
	if was.disrupts && was.seq == current.seq && current.superseded && !was.superseded {
		j.report(Ledger, "node %s is granted another reboot in the middle of number %d", r.Name, current.seq)
	}
	if was.disrupts && current.disrupts && was.seq == current.seq {
		return
	}
	j.ends(r.Name, n, was.seq)
	if current.disrupts {
		j.begins(r, n)
	}
}

// ends records that an attempt no longer disrupts the node.
func (j *Judge) ends(name string, n *node, seq int64) {
	if p := j.policies[n.by]; p != nil {
		p.grants.ended(key(name, seq), j.index)
	}
	delete(j.disrupted[n.by], name)
	n.by = ""
}

// begins records that an attempt disrupts the node, and checks whether it may.
func (j *Judge) begins(r Change, n *node) {
	if n.by = n.now.ledger; n.by == "" {
		n.by = j.ledgerOf(n.governor)
	}
	if j.disrupted[n.by] == nil {
		j.disrupted[n.by] = map[string]*node{}
	}
	j.disrupted[n.by][r.Name] = n
	j.keepsQuorum(r, n)
	p, who := j.policies[n.by], key(r.Name, n.now.seq)
	if p == nil {
		j.report(Limit, "node %s begins %d for policy %q, which is not there", r.Name, n.now.seq, n.by)
		return
	}
	p.grants.begun(who, j.index)
	e := p.entries[who]
	taken := e != nil && e.taken
	switch {
	case p.last == nil && !taken:
		j.report(Limit, "node %s begins %d for policy %s, which is gone", r.Name, n.now.seq, n.by)
		return
	case !taken && !p.lists(r.Name, n.now.seq, r.Node):
		j.report(Ledger, "node %s, UID %s, begins %d of policy %s, whose ledger has %v", r.Name, r.Node.UID, n.now.seq, n.by, p.last.Status.Grants)
	}
	if boot := r.Node.Status.NodeInfo.BootID; e != nil && e.boot != "" && e.boot != boot {
		j.report(Fence, "node %s, in boot %s, is disrupted under grant %d, which was given to boot %s", r.Name, boot, n.now.seq, e.boot)
	}
	names := slices.Sorted(maps.Keys(j.disrupted[n.by]))
	j.count(n.by, names, p, p.limits)
	if granter := j.policies[n.now.policy]; granter != nil && granter != p {
		names = slices.DeleteFunc(names, func(name string) bool { return j.nodes[name].now.policy != n.now.policy })
		j.count(n.now.policy, names, p, granter.own)
	}
}

// count compares the number of disrupted nodes with the highest limit under which their grants may
// have been given. A lowered limit does not revoke grants.
func (j *Judge) count(by string, names []string, ledger *policy, limits []limit) {
	oldest, since := j.index, j.now.At
	for _, name := range names {
		if e := ledger.entries[key(name, j.nodes[name].now.seq)]; e != nil && e.index < oldest {
			oldest, since = e.index, e.at
		}
	}
	if most := highest(limits, oldest, since, j.ago(Slack)); len(names) > most {
		j.report(Limit, "policy %s disrupts %v and may disrupt %d", by, names, most)
	}
}

// controlPlane lists the labels of control-plane nodes.
var controlPlane = []string{
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/etcd", "node-role.kubernetes.io/controlplane",
}

func isControlPlane(n *corev1.Node) bool {
	return n != nil && slices.ContainsFunc(controlPlane, func(key string) bool { _, has := n.Labels[key]; return has })
}

// keepsQuorum checks a control-plane node whose disruption begins. Two managers cannot both write
// the same ledger, but they can write different ones.
func (j *Judge) keepsQuorum(r Change, n *node) {
	for _, ledger := range slices.Sorted(maps.Keys(j.disrupted)) {
		nodes := j.disrupted[ledger]
		for _, name := range slices.Sorted(maps.Keys(nodes)) {
			if name != r.Name && (ledger == n.by || j.options.Exact) && isControlPlane(n.last) && isControlPlane(nodes[name].last) {
				j.report(ControlPlane, "node %s begins while %s is disrupted, and both are of the control plane", r.Name, name)
			}
		}
	}
}
