package reboot

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// node is the Node as the cache shows it, or as the agent's own last write left it where the cache is older.
func (r *Reconciler) node(ctx context.Context) (*corev1.Node, error) {
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: r.Node}, node); err != nil {
		return nil, err
	}
	if r.written == nil {
		return node, nil
	}
	order, err := resourceversion.CompareResourceVersion(node.ResourceVersion, r.written.ResourceVersion)
	if err == nil && order < 0 {
		return r.own(ctx)
	}
	r.written = nil
	return node, nil
}

// own is the Node as the agent's own last write left it, while the cache is older. It may stay older for ever: after a restore
// of the API server's data versions are lower than they were. So after a while, and after a conflict, the API server is
// asked. The write is not just forgotten: an agent that went by an older Node could evict pods in an attempt that it has ended.
func (r *Reconciler) own(ctx context.Context) (*corev1.Node, error) {
	if !r.Clock.Now().Before(r.writtenAt.Add(writtenLasts)) {
		live := &corev1.Node{}
		if err := r.Live.Get(ctx, client.ObjectKey{Name: r.Node}, live); err != nil {
			return nil, err
		}
		r.written, r.writtenAt = live, r.Clock.Now()
	}
	return r.written.DeepCopy(), nil
}

// Before is what an engine had reported in this boot, when an earlier process of the agent ran. Zero: it had not been
// heard. A state other than Needed is Unknown.
func (r *Reconciler) Before(ctx context.Context, name string) (engine.Report, error) {
	bootID, err := host.BootID(r.BootIDFile)
	if err != nil {
		return engine.Report{}, err
	}
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: r.Node}, node); client.IgnoreNotFound(err) != nil {
		return engine.Report{}, fmt.Errorf("reading the Node: %w", err)
	}
	return step.Before(node.Status.Conditions, name, bootID), nil
}

// observe gathers what deciding takes. Only the boot ID must be had: without it nothing may be decided.
func (r *Reconciler) observe(ctx context.Context, node *corev1.Node) (step.Observation, error) {
	bootID, err := host.BootID(r.BootIDFile)
	if err != nil {
		return step.Observation{}, err
	}
	why, requested := node.Annotations[v1alpha1.AnnotationRebootRequested]
	forgetWhy, forget := node.Annotations[v1alpha1.AnnotationForgetNeed]
	o := step.Observation{
		Now:           r.Clock.Now(),
		Node:          r.Node,
		BootID:        bootID,
		Unschedulable: node.Spec.Unschedulable,
		VolumesInUse:  node.Status.VolumesInUse,
		Paused:        v1alpha1.NodeIsPaused(node.Annotations),
		Requested:     requested,
		RequestedWhy:  why,
		Forget:        forget,
		ForgetWhy:     forgetWhy,
		Conditions:    node.Status.Conditions,
		OS:            r.os(ctx),
	}
	o.SetEngines(r.Reports.heard())
	o.Record.UID = node.UID
	o.Record.Grant, o.GrantErr = v1alpha1.ParseGrant(node.Annotations)
	o.Record.Progress, o.ProgressErr = v1alpha1.ParseProgress(node.Annotations)

	if o.Asked, err = v1alpha1.ParsePreflight(node.Annotations); err != nil {
		o.Asked = nil
	}
	if o.Told, err = v1alpha1.ParsePreflightReport(node.Annotations); err != nil {
		o.Told = nil
	}
	o.Look = r.Lookout.of(o.Asked)

	seq := o.Record.Last().Seq
	drain := r.Drains.of(seq)
	o.Drain = drain.Drain
	if r.started.progress == node.Annotations[v1alpha1.AnnotationProgress] {
		o.BegunAt = r.started.at
	}
	if r.call.seq == seq || o.ProgressErr != nil {
		o.Call = r.call.Call
	}
	if drain.State == step.DrainRunning {
		o.Policy = &drain.settings
	}
	for ask := o.NextAsk(); ask != step.AskNothing; ask = o.NextAsk() {
		r.answer(ctx, &o, ask)
		o.Answered = append(o.Answered, ask)
	}
	return o, nil
}

// answer finds out what a decision depends on.
func (r *Reconciler) answer(ctx context.Context, o *step.Observation, ask step.Ask) {
	switch ask {
	case step.AskPolicy:
		o.Policy, o.Entry = r.settings(ctx, *o)
	case step.AskVolumes:
		o.Kept = r.kept(ctx, *o)
	case step.AskPods:
		o.StartLook = r.startLook(ctx, *o)
	case step.AskEngines:
		o.Confirmed = r.confirmed(ctx)
		o.SetEngines(r.Reports.heard())
	case step.AskInhibitors:
		o.Inhibitors = r.inhibitors(ctx)
	case step.AskCoordinators:
		o.Coordinators = r.coordinators(ctx)
	case step.AskNothing:
	}
}

// os describes the host. What it runs is no secret of the agent's process: it may be read again at any time.
func (r *Reconciler) os(ctx context.Context) *step.OS {
	release, err := host.ReadOSRelease(r.HostRoot)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("Left the labels of the operating system alone", "reason", err.Error())
		return nil
	}
	return &step.OS{
		ID: host.LabelValue(release.ID), Version: host.LabelValue(release.Version), Group: host.LabelValue(release.Group),
	}
}

// settings reads the granting policy, live, where it counts now: before the write that begins an attempt, with the entry for
// the node in its ledger, and before the write past the point of no return. What follows such a write at once, the drain and
// the call of logind, goes by the policy of the write. While a drain runs it runs by the policy it began with; where the
// policy cannot be read, an attempt that is under way goes on by what was read last, and none begins.
func (r *Reconciler) settings(ctx context.Context, o step.Observation) (*step.Settings, *v1alpha1.LedgerEntry) {
	grant := o.Record.Grant
	if o.FollowsWrite() && o.Now.Before(r.policy.at.Add(policyLasts)) && r.policy.grant == idOf(grant) {
		return r.policy.of(grant), nil
	}
	policy, err := policyNamed(ctx, r.Policies, grant.Policy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot read the policy of the grant", "RebootPolicy", grant.Policy)
		if !o.UnderWay() {
			return nil, nil
		}
		return r.policy.of(grant), nil
	}
	r.policy = remembered{idOf(grant), o.Now, settingsOf(policy)}
	return r.policy.of(grant), entryFor(r.Node, policy.Status.Grants)
}

func policyNamed(ctx context.Context, policies client.Reader, name string) (*v1alpha1.RebootPolicy, error) {
	policy := &v1alpha1.RebootPolicy{}
	if err := policies.Get(ctx, client.ObjectKey{Name: name}, policy); err != nil {
		return nil, fmt.Errorf("reading policy %q: %w", name, err)
	}
	return policy, nil
}

func settingsOf(policy *v1alpha1.RebootPolicy) step.Settings {
	spec := &policy.Spec
	return step.Settings{Drain: spec.DrainOrDefault(), Reboot: spec.RebootOrDefault(), BlockingPods: spec.BlockingPods()}
}

// entryFor is the entry of a ledger for a node. Nil: there is none.
func entryFor(node string, ledger []v1alpha1.LedgerEntry) *v1alpha1.LedgerEntry {
	i := slices.IndexFunc(ledger, func(e v1alpha1.LedgerEntry) bool { return e.Node == node })
	if i < 0 {
		return nil
	}
	return &ledger[i]
}

// startLook looks at the node's pods where the agent could begin now: whatever was known before may be out of date. What is
// in the way is looked for again only after a while; that nothing is, is never taken for granted.
func (r *Reconciler) startLook(ctx context.Context, o step.Observation) step.Look {
	grant := idOf(o.Record.Grant)
	if r.looked.grant == grant && r.looked.Lasts(*o.Policy, o.Now) {
		return r.looked.Look
	}
	r.looked = looked{grant, r.Lookout.once(ctx, *o.Policy)}
	return r.looked.Look
}

// confirmed reports whether every engine that asks for a reboot has answered once more.
func (r *Reconciler) confirmed(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, confirmLimit)
	defer cancel()
	if err := r.Reports.confirm(ctx); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Begins nothing until the engines have answered")
		return false
	}
	return true
}

// confirmLimit is how long engines may take to answer right before a drain begins. rpm-ostree may have to start for it.
const confirmLimit = 15 * time.Second

// looked is what the agent saw last before it would have begun, for one grant.
type looked struct {
	grant grantID
	step.Look
}

// grantID tells grants apart: those of two policies may have the same number.
type grantID struct {
	policy string
	seq    int64
}

func idOf(grant *v1alpha1.Grant) grantID { return grantID{grant.Policy, grant.Seq} }

// policyLasts is how long what was read for a write holds for what follows it. Longer than that nothing follows at once.
const policyLasts = 5 * time.Second

// remembered is what a policy said last, for one grant, and when that was.
type remembered struct {
	grant grantID
	at    time.Time
	step.Settings
}

func (m remembered) of(grant *v1alpha1.Grant) *step.Settings {
	if m.grant != idOf(grant) {
		return nil
	}
	return &m.Settings
}

func (r *Reconciler) inhibitors(ctx context.Context) step.Inhibitors {
	blocking, err := r.Logind.BlockInhibitors(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("Cannot ask logind who blocks a shutdown", "reason", err.Error())
		return step.Inhibitors{Known: true, Message: unasked(err)}
	}
	return step.Inhibitors{Known: true, Message: inhibited(blocking)}
}
