package plan_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// pass does what one Reconcile of the real manager does (controllers/rebootpolicy_controller.go).
// It plans and writes until a plan has nothing left to do, and then reports. Each round writes
// either Nodes or the ledger. Like the real one, a pass has eight rounds, and the events of its own
// writes bring the next pass. It reports whether it came to an end.
func (c *cluster) pass(name string) bool {
	delete(c.woken, name)
	tried := map[string]underway.Action{}
	for range 8 {
		p := plan.Of(c.snapshot(name))
		wrote, alive := c.applyReboots(name, p, tried)
		if !alive {
			return false
		}
		if wrote {
			continue
		}
		if !p.StatusMoves() {
			c.finalize(name, p)
			return true
		}
		if !c.mayWrite(name) {
			return false
		}
		if len(p.Ledger.Granted) > 0 {
			c.writeMarkers(name, p.Markers)
		}
		c.writeLedger(name, p)
	}
	c.woken[name] = true
	return false
}

func (c *cluster) snapshot(name string) plan.Snapshot {
	s := plan.Snapshot{Now: c.now, Policy: c.policies[name].DeepCopy(), Governor: c.governor(), Nodes: c.views()}
	s.Ledger = s.Governor.Ledgers.For(s.Policy)
	schedule, err := window.Of(&s.Policy.Spec)
	if err != nil {
		s.WindowInvalid = err.Error()
	}
	s.Schedule, s.Window, s.Gates = schedule, schedule.At(c.now), c.gates[name]
	return s
}

// views returns the Nodes as the planner sees them.
func (c *cluster) views() []*record.Node {
	var views []*record.Node
	for _, name := range shuffled(c, slices.Sorted(maps.Keys(c.hosts))) {
		if h := c.hosts[name]; h.node != nil {
			views = append(views, new(h.view()))
		}
	}
	return views
}

// mayWrite returns false if the manager dies before a write, which happens once in fifty writes in
// random orders. The next manager goes on.
func (c *cluster) mayWrite(name string) bool {
	if c.chance(50) {
		c.add("the manager dies before a write, another one takes over")
		c.woken[name] = true
		return false
	}
	return true
}

// applyReboots applies the actions on Nodes. It reports whether it tried any, and whether the
// manager is still alive.
func (c *cluster) applyReboots(name string, p plan.Plan, tried map[string]underway.Action) (wrote, alive bool) {
	for _, t := range p.Reboots {
		if !t.Action.WritesNode() || tried[t.Entry.Node] == t.Action {
			continue
		}
		if !c.mayWrite(name) {
			return false, false
		}
		tried[t.Entry.Node], wrote = t.Action, true
		if c.chance(50) {
			c.woken[name] = true // a lost race: the next pass follows at once
			continue
		}
		s := c.snapshot(name)
		if t = p.Again(s, nodeNamed(s, t.Entry.Node), t.Entry); t.Action == tried[t.Entry.Node] {
			c.applyReboot(name, t)
		}
	}
	return wrote, true
}

func (c *cluster) applyReboot(name string, t underway.Reboot) {
	h, n, holder := c.hosts[t.Entry.Node], t.Node, c.snapshot(name).Ledger.Policy.Name
	switch t.Action {
	case underway.PublishGrant:
		grant, ok := protocol.Publish(n.Record, t.Entry, holder, c.now)
		c.permitted(ok, t)
		grant.Annotations, grant.Excluded, grant.Unremediated = n.AnnotationsToSet(), n.SetsExclusion(c.policies[name]), n.SetsRemediation()
		if !t.Rebooting() || n.BootID == t.Entry.BootID {
			grant.Taints = record.TaintsThatKeepPodsOff(n.Taints)
		}
		c.add("%s publishes the grant of %s, number %d", name, h.name, t.Entry.Seq)
		c.update(h, func(node *corev1.Node) {
			annotate(node, v1alpha1.AnnotationGrant, grant.String())
			for _, key := range grant.Annotations {
				annotate(node, key, record.AutoscalerValue)
			}
			removeLabels(node, n, grant)
			if node.Labels == nil {
				node.Labels = map[string]string{}
			}
			if grant.Excluded {
				node.Labels[v1alpha1.LabelExcludeFromLoadBalancers] = v1alpha1.ExcludedByOperator
			}
			if grant.Unremediated {
				node.Labels[v1alpha1.LabelExcludeFromRemediation] = record.AutoscalerValue
			}
			annotate(node, v1alpha1.AnnotationPreflight, gates.PodsOf(c.policies[name]).Preflight())
			c.condition(node, v1alpha1.NodeRebootPermitted, corev1.ConditionTrue, v1alpha1.ReasonGranted, plan.GrantedMessage(name, t.Entry.Seq))
			if !n.PlannedByOthers && !t.Rebooting() {
				c.condition(node, corev1.NodeMaintenancePlanned, corev1.ConditionTrue, v1alpha1.EventRebootGranted, "")
			}
			endHooks(node, t.Entry.Seq)
		})
	case underway.CancelGrant:
		grant, ok := protocol.Cancel(n.Record, t.Entry, holder, t.Reason, t.CancelMessage(), c.now)
		c.permitted(ok, t)
		grant.Annotations = n.AnnotationsToKeep(c.policies[name])
		c.add("%s cancels the grant of %s, %s: %s", name, h.name, t.Reason, t.Message)
		c.update(h, func(node *corev1.Node) {
			annotate(node, v1alpha1.AnnotationGrant, grant.String())
			removeAnnotations(node, n, grant)
			removeLabels(node, n, grant)
			removeCondition(node, v1alpha1.NodeRebootPermitted)
			if n.Planned != nil {
				removeCondition(node, corev1.NodeMaintenancePlanned)
			}
			endHooks(node, t.Entry.Seq)
		})
	case underway.BeginHooks:
		c.add("%s asks the hooks of %s: %s", name, h.name, t.Stage)
		phase := t.Begin(c.policies[name], c.now)
		c.update(h, func(node *corev1.Node) {
			endHooks(node, math.MaxInt64)
			for _, key := range phase.Hooks {
				delete(node.Annotations, string(key))
			}
			annotate(node, v1alpha1.AnnotationHooks, phase.String())
		})
	case underway.NoteTaint:
		c.add("%s notes about %s: %s", name, h.name, t.Message)
		c.update(h, func(node *corev1.Node) {
			annotate(node, v1alpha1.AnnotationHooks, t.Note(c.policies[name], c.now).String())
		})
	case underway.FinishGrant:
		grant, ok := protocol.Finish(n.Record, t.Entry, holder, n.BootID, c.now)
		c.permitted(ok, t)
		grant.Annotations = n.AnnotationsToKeep(c.policies[name])
		uncordon := n.Progress.Cordoned && n.Cordoned && h.cordonedBy == byAgent
		c.add("%s puts %s back in service%s", name, h.name, map[bool]string{true: ", uncordoned", false: ""}[uncordon])
		c.update(h, func(node *corev1.Node) {
			annotate(node, v1alpha1.AnnotationGrant, grant.String())
			removeAnnotations(node, n, grant)
			removeLabels(node, n, grant)
			delete(node.Annotations, v1alpha1.AnnotationPreflight)
			removeCondition(node, v1alpha1.NodeRebootPermitted)
			node.Spec.Unschedulable = node.Spec.Unschedulable && !uncordon
			node.Spec.Taints = record.WithPending(node.Spec.Taints, "")
			endHooks(node, t.Entry.Seq)
		})
	case underway.Wait, underway.WithdrawGrant, underway.ReleaseEntry:
	}
}

// removeAnnotations removes the autoscaler annotations of the node's grant, except those that its
// end keeps.
func removeAnnotations(node *corev1.Node, n *record.Node, end protocol.Grant) {
	for _, key := range n.AnnotationsToRemove() {
		if !slices.Contains(end.Annotations, key) {
			delete(node.Annotations, key)
		}
	}
}

// removeLabels removes the labels of the node's grant, except those that its end keeps.
func removeLabels(node *corev1.Node, n *record.Node, end protocol.Grant) {
	if n.RemovesExclusion() && !end.Excluded {
		delete(node.Labels, v1alpha1.LabelExcludeFromLoadBalancers)
	}
	if n.RemovesRemediation() && !end.Unremediated {
		delete(node.Labels, v1alpha1.LabelExcludeFromRemediation)
	}
}

// writeMarkers writes the markers that are due. After a lost race the next pass writes the rest.
func (c *cluster) writeMarkers(name string, markers []record.Markers) {
	for _, m := range markers {
		if c.chance(50) {
			c.woken[name] = true
			continue
		}
		h := c.hosts[m.Node]
		n := h.view()
		c.update(h, func(node *corev1.Node) {
			if m.RemoveAnnotations || m.RemoveExclusion || m.RemoveRemediation {
				grant := n.Grant.Without(m.RemoveAnnotations, m.RemoveExclusion, m.RemoveRemediation)
				annotate(node, v1alpha1.AnnotationGrant, grant.String())
				removeAnnotations(node, &n, grant)
				removeLabels(node, &n, grant)
			}
			if m.RemoveHooks {
				endHooks(node, math.MaxInt64)
			}
			node.Spec.Taints = record.WithPending(node.Spec.Taints, m.Pending)
			for key, value := range map[string]string{v1alpha1.AnnotationMaxUptime: m.Needs.MaxUptime, v1alpha1.AnnotationNodeConditions: m.Needs.Conditions} {
				delete(node.Annotations, key)
				if value != "" {
					annotate(node, key, value)
				}
			}
		})
	}
}

// endHooks removes what phases of hooks, up to that of an entry, left on the node: the phase and
// the answers.
func endHooks(node *corev1.Node, seq int64) {
	phase, err := protocol.ParseHookPhase(node.Annotations)
	if phase != nil && phase.Seq > seq {
		return
	}
	delete(node.Annotations, v1alpha1.AnnotationHooks)
	if phase == nil || err != nil {
		return
	}
	for _, key := range phase.Hooks {
		delete(node.Annotations, string(key))
	}
}

// permitted fails the test if the protocol refuses an action, because the manager would try it
// forever.
func (c *cluster) permitted(ok bool, t underway.Reboot) {
	if !ok {
		c.Fatalf("%s of %s is planned and the protocol does not permit it", t.Action, t.Entry.Node)
	}
}

// writeLedger writes grants, adoptions and releases in one PUT of the status.
func (c *cluster) writeLedger(name string, p plan.Plan) {
	for _, t := range p.Released() {
		c.add("%s releases %s, number %d (%s: %s)", name, t.Entry.Node, t.Entry.Seq, t.Reason, t.Message)
	}
	for _, e := range p.Ledger.Adopted {
		c.add("%s finds the grant of %s again, number %d", name, e.Node, e.Seq)
	}
	for _, e := range p.Ledger.Granted {
		c.add("%s grants %s a reboot, number %d", name, e.Node, e.Seq)
	}
	c.putStatus(name, p)
	if len(p.Released()) == 0 {
		return
	}
	// The event of a freed slot wakes every other policy whose nodes wait for it.
	for _, t := range p.Released() {
		for _, affected := range c.governor().Freed(p.Ledger.Policy, t.Entry, t.Node) {
			if affected != name {
				c.wakePolicy(affected)
			}
		}
	}
}

func (c *cluster) putStatus(name string, p plan.Plan) {
	before := c.policies[name]
	after := before.DeepCopy()
	s := &after.Status
	s.Limit, s.Seq, s.History, s.Gates = p.Limit, max(s.Seq, p.Ledger.Seq), p.History(after, c.now), p.Gates
	p.Ledger.Enter(name, s)
	c.putRun(name, before.Status, s, p)
	for _, t := range p.Released() {
		if t.Node != nil && t.Node.Grant != nil && t.Node.Grant.State == protocol.GrantFinished && t.Node.Grant.Seq == t.Entry.Seq {
			s.LastRebootAt = &t.Node.Grant.At
		}
	}
	status := metav1.ConditionFalse
	if p.Halt.Halted {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionHalted, Status: status, Reason: string(p.Halt.Reason), Message: p.Halt.Message, LastTransitionTime: c.at(),
	})
	c.checkStatus(before, after)
	c.put(after)
	switch {
	case p.Ledger.Policy == name || p.RunMoves && !p.Ledger.Changed():
	case c.chance(20):
		c.add("the manager dies between the history and the ledger, another one takes over")
		c.woken[name] = true
	default:
		c.putShared(p)
	}
}

// putRun writes the run, and records the stage of its hooks if that has changed.
func (c *cluster) putRun(name string, before v1alpha1.RebootPolicyStatus, s *v1alpha1.RebootPolicyStatus, p plan.Plan) {
	run, over := p.Run(before, c.now)
	if over {
		run = nil
	}
	s.Run = run
	switch {
	case !p.RunMoves:
	case p.RunHooks == nil:
		c.add("the run of %s is over", name)
	default:
		c.add("the run of %s: %s, number %d, asks %v %s", name, p.RunHooks.Stage, p.RunHooks.Number, p.RunHooks.Asked, p.RunHooks.Message)
	}
}

// putShared writes the entries into another policy's ledger.
func (c *cluster) putShared(p plan.Plan) {
	before := c.policies[p.Ledger.Policy]
	after := before.DeepCopy()
	p.Ledger.Enter(after.Name, &after.Status)
	c.checkStatus(before, after)
	c.put(after)
}

// finalize writes the conditions of nodes, then the status, and then handles an administrator's
// resume annotation.
func (c *cluster) finalize(name string, p plan.Plan) {
	c.checkIdempotent(name, p)
	for _, d := range p.Decisions {
		c.decide(c.hosts[d.Node], d)
	}
	c.putStatus(name, p)
	c.writeMarkers(name, p.Markers)
	c.checkMarkers(name)
	c.due[name] = p.Next
	c.shown[name] = policyLine(p)
	policy := c.policies[name]
	if _, resumed := policy.Annotations[v1alpha1.AnnotationResume]; resumed {
		c.edit(name, func(p *v1alpha1.RebootPolicy) { delete(p.Annotations, v1alpha1.AnnotationResume) })
	}
	if policy.DeletionTimestamp != nil && len(p.Ledger.Own())+len(policy.Status.Grants) == 0 && p.RunHooks == nil {
		c.writeMarkers(name, plan.UngovernedMarkers(c.governor(), c.views()))
		if c.woken[name] {
			return // lost a race
		}
		c.add("policy %s is gone", name)
		c.remove(name)
	}
}

// decide writes a decision if it differs from the node's condition.
func (c *cluster) decide(h *host, d plan.Decision) {
	current := conditionOf(h.node, v1alpha1.NodeRebootPermitted)
	shown := current == nil && d.Status == "" ||
		current != nil && current.Status == d.Status && current.Reason == string(d.Reason) && current.Message == d.Message
	failed, should := conditionOf(h.node, v1alpha1.NodeRebootFailed), d.RebootFailed()
	shown = shown && (failed != nil) == (should.Status != "")
	if shown && h.node.Annotations[v1alpha1.AnnotationPreflight] == d.Preflight && !d.RemovePlanned {
		return
	}
	c.update(h, func(node *corev1.Node) {
		annotate(node, v1alpha1.AnnotationPreflight, d.Preflight)
		if d.Preflight == "" {
			delete(node.Annotations, v1alpha1.AnnotationPreflight)
		}
		removeCondition(node, v1alpha1.NodeRebootFailed)
		if d.RemovePlanned {
			removeCondition(node, corev1.NodeMaintenancePlanned)
		}
		if should.Status != "" {
			c.condition(node, v1alpha1.NodeRebootFailed, should.Status, should.Reason, should.Message)
		}
		if d.Status == "" {
			removeCondition(node, v1alpha1.NodeRebootPermitted)
			return
		}
		c.condition(node, v1alpha1.NodeRebootPermitted, d.Status, d.Reason, d.Message)
	})
}

func annotate(node *corev1.Node, key, value string) {
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[key] = value
}

// condition sets a condition of a Node; the transition time moves only with the status.
func (c *cluster) condition(
	node *corev1.Node, kind corev1.NodeConditionType, status corev1.ConditionStatus, reason v1alpha1.Reason, message string,
) {
	next := corev1.NodeCondition{Type: kind, Status: status, Reason: string(reason), Message: message, LastTransitionTime: c.at()}
	if current := conditionOf(node, kind); current != nil {
		if current.Status == status {
			next.LastTransitionTime = current.LastTransitionTime
		}
		*current = next
		return
	}
	node.Status.Conditions = append(node.Status.Conditions, next)
}

func removeCondition(node *corev1.Node, kind corev1.NodeConditionType) {
	node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
}

func conditionOf(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &node.Status.Conditions[i]
}

// policyLine returns a plan in one line for people.
func policyLine(p plan.Plan) string {
	parts := []string{fmt.Sprintf("%d of at most %d under way", len(p.Ledger.Own()), p.Limit)}
	if p.Holders != "" {
		parts = append(parts, "unavailable: "+p.Holders)
	}
	var waiting []string
	for _, b := range p.Blocked {
		waiting = append(waiting, fmt.Sprintf("%d %s", b.Count, b.Reason))
	}
	if len(waiting) > 0 {
		parts = append(parts, "waiting: "+strings.Join(waiting, ", "))
	}
	if p.Counts.Failed > 0 {
		parts = append(parts, fmt.Sprintf("failed: %d", p.Counts.Failed))
	}
	if p.RunWaits != "" {
		parts = append(parts, p.RunWaits)
	}
	if p.Halt.Halted {
		parts = append(parts, "HALTED: "+p.Halt.Message)
	}
	return strings.Join(parts, "; ")
}
