package forecast

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	"github.com/reboot-operator/reboot-operator/controllers/plan/queue"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// fleet is the imagined state of the policy and its nodes at an instant.
type fleet struct {
	// Snapshot is the input of the planner. The forecast owns its policy, with the ledger, and its
	// nodes.
	plan.Snapshot
	// limit is maxUnavailable, in nodes, of the policy whose limit counts. own is the limit of this
	// policy, and ofRings are the limits of its rings.
	limit, own int
	ofRings    map[int]int32
	// queues are the nodes that wait for their turn.
	queues queues
	// shown are the nodes outside the queues that the planner sees in each round: those that are
	// being rebooted, are unavailable, back off, or belong to the control plane.
	shown map[string]*record.Node
	// rings are those of spec.rings. For each ring, the planner sees the node that soaks longest
	// and one node that waits for a person, which is enough to know what later rings wait for.
	rings    queue.Rings
	soaking  map[int]string
	stranded map[int]bool
	// conflicts are nodes that need a reboot and that both this policy and rival policies select.
	conflicts map[string][]string
}

// fleetOf returns the current state.
func fleetOf(s plan.Snapshot) *fleet {
	s.Nodes, s.Ledger = gates.Supposing(s.Policy, s.Nodes), s.Ledger.Kept()
	o := plan.Ahead(s)
	f := &fleet{
		Snapshot: s, limit: int(o.Limits.Ledger), own: int(o.Limits.Least()), ofRings: o.Limits.Rings, queues: queuesOf(s.Policy, o.Queues), rings: o.Rings,
		conflicts: o.Conflicts, shown: map[string]*record.Node{}, soaking: map[int]string{}, stranded: map[int]bool{},
	}
	held := map[string]bool{}
	for _, e := range s.Ledger.Policy.Status.Grants {
		held[e.Node] = true
	}
	with := append(slices.Clone(s.Ledger.With), s.Policy.Name)
	for _, n := range s.Nodes {
		counts := s.Governor.Govern(n).IsOf(with)
		if held[n.Name] || n.ControlPlane || n.Outstanding() || n.Failing() || n.Unavailable() && counts {
			f.show(n)
		}
	}
	f.soak(o.Soaking)
	f.Policy = s.Policy.DeepCopy()
	f.Ledger = s.Ledger.Updated(s.Ledger.Policy.DeepCopy()).Updated(f.Policy)
	f.fix(o)
	f.clearGates()
	if !f.runHooksUnanswered() {
		f.answerRunHooks()
	}
	f.Nodes, f.Window = nil, window.State{}
	return f
}

// soak adds the nodes that already soak, by ring.
func (f *fleet) soak(soaking map[int]*record.Node) {
	for ring, n := range soaking {
		if f.shown[n.Name] == nil {
			f.soaking[ring] = n.Name
		}
		f.show(n)
	}
}

// fix replaces percentages in the policy by numbers of nodes, because the planner sees only a part
// of the fleet, and sets mode Enforce. An invalid spec keeps its limits, so that nothing is
// granted.
func (f *fleet) fix(o plan.Outlook) {
	f.Policy.Spec.Mode = v1alpha1.ModeEnforce
	if o.Invalid {
		return
	}
	holder := &f.Ledger.Policy.Spec
	if holder.Concurrency == nil {
		holder.Concurrency = &v1alpha1.Concurrency{}
	}
	holder.Concurrency.MaxUnavailable = new(intstr.FromInt32(o.Limits.Ledger))
	if own := o.Limits.Own; f.Ledger.Apart() && own != nil {
		f.Policy.Spec.Concurrency.MaxUnavailable = new(intstr.FromInt32(*own))
	}
	if first := f.Policy.Spec.FirstBatch(); first != nil {
		first.Nodes = new(intstr.FromInt32(o.Limits.First))
	}
	for ring, limit := range o.Limits.Rings {
		f.Policy.Spec.Rings[ring].MaxUnavailable = new(intstr.FromInt32(limit))
	}
}

// clearGates assumes that gates which were not queried yet are clear, because they are queried only
// once a node waits for them. Other gates are expected to keep their state.
func (f *fleet) clearGates() {
	f.Gates = slices.Clone(f.Gates)
	for _, name := range gates.Names(&f.Policy.Spec) {
		if !slices.ContainsFunc(f.Gates, func(known v1alpha1.GateStatus) bool { return known.Name == name }) {
			f.Gates = append(f.Gates, v1alpha1.GateStatus{Name: name, State: v1alpha1.GateClear})
		}
	}
}

// runHooksUnanswered reports whether hooks of the run have exceeded their patience. The nodes then
// stay until a person acts.
func (f *fleet) runHooksUnanswered() bool {
	run := f.Policy.Status.Run
	return run != nil && run.Hooks != nil && len(run.Hooks.Asked) > 0 && f.Now.Sub(run.Hooks.At.Time) >= underway.HookPatience
}

// answerRunHooks assumes that hooks of runs approve. A hook after the last run that has refused, or
// has not answered in time, blocks the next run until a person acts.
func (f *fleet) answerRunHooks() {
	run := f.Policy.Status.Run
	if f.Policy.Spec.Hooks != nil {
		f.Policy.Spec.Hooks.RunBefore = nil
	}
	if run != nil && run.Hooks != nil && run.Hooks.Stage == v1alpha1.RunAfter && run.Hooks.Reason != "" {
		return
	}
	if run != nil {
		run.Hooks = nil
	}
	if f.Policy.Spec.Hooks != nil {
		f.Policy.Spec.Hooks.RunAfter = nil
	}
}

// pausedForGood reports whether the policy is paused without an end.
func (f *fleet) pausedForGood() bool {
	return f.Policy.Spec.PausedAt(f.Now) && f.Policy.Spec.Pause.End().IsZero()
}

// show makes the planner see a node in each round.
func (f *fleet) show(n *record.Node) {
	if f.shown[n.Name] == nil {
		f.shown[n.Name] = new(*n)
		f.queues.leave(n.Name)
	}
}

// see makes the planner see the shown nodes and the given waiting ones, with the window of the
// current instant.
func (f *fleet) see(waiting []*record.Node) {
	f.look()
	f.Nodes = append(slices.AppendSeq(f.Nodes[:0], maps.Values(f.shown)), waiting...)
}

// look updates the state of the windows.
func (f *fleet) look() {
	if f.Window == (window.State{}) || !f.Window.Next.IsZero() && !f.Now.Before(f.Window.Next) {
		f.Window = f.Schedule.At(f.Now)
	}
}

// holds reports whether the ledger has an entry of the policy for the node.
func (f *fleet) holds(node string) bool {
	return slices.ContainsFunc(f.Ledger.Policy.Status.Grants, func(e v1alpha1.LedgerEntry) bool { return e.Node == node && f.Ledger.Owns(e) })
}

// drop removes all entries of the node from the ledger.
func (f *fleet) drop(node string) {
	status := &f.Ledger.Policy.Status
	status.Grants = slices.DeleteFunc(status.Grants, func(e v1alpha1.LedgerEntry) bool { return e.Node == node })
}

// write updates the status as the manager does after a plan, as far as the planner reads it.
func (f *fleet) write(p plan.Plan) {
	status := &f.Policy.Status
	f.writeRun(p)
	status.Seq, status.Limit, status.History = p.Ledger.Seq, p.Limit, p.History(f.Policy, f.Now)
	p.Ledger.Enter(f.Ledger.Policy.Name, &f.Ledger.Policy.Status)
	if p.Halt.Halted {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionHalted, Status: metav1.ConditionTrue, Reason: string(p.Halt.Reason), Message: p.Halt.Message,
		})
	}
}

// writeRun updates the run. Once its hooks have finished, the hooks of later runs are assumed to
// approve.
func (f *fleet) writeRun(p plan.Plan) {
	run, over := p.Run(f.Policy.Status, f.Now)
	if over {
		run = nil
	}
	if f.Policy.Status.Run = run; p.RunMoves && p.RunHooks == nil {
		f.answerRunHooks()
	}
}

// cancel cancels a grant as the manager would now, and assumes that the agent has ended its
// attempt.
func (f *fleet) cancel(t underway.Reboot) {
	n := f.shown[t.Entry.Node]
	n.Cordoned = n.Cordoned && (n.Progress == nil || !n.Progress.Cordoned)
	grant, _ := protocol.Cancel(n.Record, t.Entry, f.Ledger.Policy.Name, t.Reason, t.CancelMessage(), f.Now)
	n.Grant, n.Progress = &grant, nil
}

// serve puts a node back in service on a new boot. The times of the reboot go into its record.
func (f *fleet) serve(n *record.Node, r Expected) {
	n.Cordoned = n.Cordoned && (n.Progress == nil || !n.Progress.Cordoned)
	if n.Grant != nil && n.Progress != nil {
		n.Progress = &protocol.Progress{
			Seq: n.Grant.Seq, Phase: protocol.PhaseRebooting, BootID: n.BootID, At: metav1.NewTime(r.RebootsAt), DrainStartedAt: new(metav1.NewTime(r.DrainsAt)),
		}
		grant, _ := protocol.Finish(n.Record, n.Entry(n.Name), n.Grant.LedgerName(), n.BootID, f.Now)
		n.Grant = &grant
	}
	n.Required, n.BootID, n.Hooks = corev1.ConditionFalse, n.BootID+"+", nil
	n.Ready, n.Maintenance, n.ReadySince, n.MaintenanceSince = true, false, r.SettlesAt, r.SettlesAt
	delete(f.conflicts, n.Name)
}

// retire removes a node that is back in service from the planner's view. Nodes of the control
// plane, nodes that are cordoned for another reason, and the last soaking node of a ring remain.
func (f *fleet) retire(n *record.Node) {
	if n == nil || n.NeedsReboot() || n.ControlPlane || n.Unavailable() {
		return
	}
	leaves := n.Name
	if ring := f.rings.Of(n); f.rings.Soak(ring) > 0 && n.Grant != nil {
		leaves, f.soaking[ring] = f.soaking[ring], n.Name
	}
	delete(f.shown, leaves)
}

// strand sets a node aside that waits for a person.
func (f *fleet) strand(name string) {
	n := f.queues.node(name)
	if ring := f.rings.Of(n); f.rings.Waited(ring) && !n.Paused(f.Now) && !f.stranded[ring] {
		f.stranded[ring] = true
		f.show(n)
		return
	}
	f.queues.park(name)
}
