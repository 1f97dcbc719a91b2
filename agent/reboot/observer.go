package reboot

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// observer gathers the facts for a decision, and owns what this process knows beyond the Node and
// the host.
type observer struct {
	node     string
	host     Host
	live     client.Reader
	policies client.Reader
	drains   *drains
	lookout  *lookout
	reports  *Reports
	clock    clock.PassiveClock

	// policy holds the settings that were last read from the granting policy.
	policy lastSettings
	// claims caches the claims of the drained node.
	claims claims
	// startLook is the last check of the pods before a drain.
	startLook startLook
	// unconfirmed is the grant under which an engine does not answer, and since when.
	unconfirmed unconfirmed
	// sighting is the time since which the Node has its current progress.
	sighting sighting
	// call is the outcome of the last call of logind.
	call call
}

// sighting is the time at which this process first saw a progress, with the reading of the monotonic
// clock. begun reports whether this process wrote it.
type sighting struct {
	progress string
	at       time.Time
	begun    bool
}

// call is the outcome of the last call of logind for one grant.
type call struct {
	step.Call
	seq int64
}

// forget drops what is known of earlier attempts. No drain may be running.
func (v *observer) forget() {
	v.drains.forget()
	v.call, v.claims = call{}, claims{}
}

// wrote is called after this process has written a progress to begin a drain or to call logind.
func (v *observer) wrote(progress protocol.Progress) {
	v.sighting = sighting{progress.String(), v.clock.Now(), true}
}

// called records the outcome of a call of logind.
func (v *observer) called(seq int64, result step.Call) { v.call = call{result, seq} }

// observe gathers everything that costs no request. Only a missing boot ID is an error, because
// nothing can be decided without it.
func (v *observer) observe(ctx context.Context, node *corev1.Node) (step.Observation, error) {
	bootID, err := host.BootID(v.host.BootIDFile)
	if err != nil {
		return step.Observation{}, err
	}
	why, requested := v1alpha1.RequestIn(node.Annotations)
	value, labelled := v1alpha1.RequestIn(node.Labels)
	o := step.Observation{
		Now:           v.clock.Now(),
		Node:          v.node,
		BootID:        bootID,
		Record:        protocol.RecordOf(node),
		Unschedulable: node.Spec.Unschedulable,
		VolumesInUse:  node.Status.VolumesInUse,
		Paused:        v1alpha1.NodeIsPaused(node.Annotations, v.clock.Now()),
		Requested:     requested,
		RequestedWhy:  why,
		Labelled:      labelled,
		LabelValue:    value,
		Conditions:    node.Status.Conditions,
		OS:            v.os(ctx),
	}
	if o.FleetLock, err = protocol.ParseFleetLock(node.Annotations); err != nil {
		ctrl.LoggerFrom(ctx).V(4).Info("Ignored a FleetLock request that cannot be read", "reason", err.Error())
	}
	if o.NodeConditions, err = protocol.ParseNodeConditions(node.Annotations); err != nil {
		ctrl.LoggerFrom(ctx).V(4).Info("Ignored conditions that cannot be read", "reason", err.Error())
	}
	o.MaxUptime, o.BootedAt = protocol.ParseMaxUptime(node.Annotations), v1alpha1.BootedAt(node.Annotations)
	o.Uptime = v.uptime(ctx, o.MaxUptime)
	if o.Asked, err = protocol.ParsePreflight(node.Annotations); err != nil {
		o.Asked = nil
	}
	if o.Reported, err = protocol.ParseAgentReport(node.Annotations); err != nil {
		ctrl.LoggerFrom(ctx).V(4).Info("Replacing a report that cannot be read", "reason", err.Error())
	}
	o.VersionBefore = node.Labels[v1alpha1.LabelOSVersion]
	if o.Before, err = protocol.ParseEngines(node.Annotations); err != nil {
		ctrl.LoggerFrom(ctx).V(4).Info("Replacing a record of the engines that cannot be read", "reason", err.Error())
	}
	o.Engines = step.AllReports(v.reports.all(), o)
	o.Look = v.lookout.of(o.Asked)

	seq := o.Record.Last().Seq
	drain := v.drains.of(seq)
	o.Drain = drain.Drain
	if progress := node.Annotations[v1alpha1.AnnotationProgress]; v.sighting.progress != progress {
		v.sighting = sighting{progress: progress, at: o.Now}
	}
	o.SeenAt, o.Began = v.sighting.at, v.sighting.begun
	if v.call.seq == seq || o.Record.ProgressErr != nil {
		o.Call = v.call.Call
	}
	v.recall(&o)
	if drain.State == step.DrainRunning {
		o.LastPolicy = &drain.settings
	}
	return o, nil
}

// recall adds what was last read for the grant on the Node.
func (v *observer) recall(o *step.Observation) {
	grant := o.Record.Grant
	if grant == nil {
		return
	}
	o.LastPolicy, o.LastPolicyAt = v.policy.of(grant), v.policy.at
	if v.startLook.grant == idOf(grant) {
		o.LastStartLook = v.startLook.Look
	}
}

// find looks up one more fact.
func (v *observer) find(ctx context.Context, o *step.Observation, fact step.Fact) {
	switch fact {
	case step.FactLedger, step.FactPolicy:
		o.Policy, o.Entry = v.settings(ctx, o.Record.Grant, fact == step.FactLedger)
	case step.FactVolumes:
		o.Kept = v.claims.kept(ctx, v.live, o.Record.Last().Seq, o.Drain.Volumes)
	case step.FactPods:
		v.startLook = startLook{idOf(o.Record.Grant), v.lookout.once(ctx, o.Settings())}
		o.StartLook = v.startLook.Look
	case step.FactEngines:
		o.UnansweredSince = v.confirm(ctx, idOf(o.Record.Grant))
		o.Confirmed = o.UnansweredSince.IsZero()
		o.Engines = step.AllReports(v.reports.all(), *o)
	case step.FactInhibitors:
		o.Inhibitors = v.inhibitors(ctx)
		if step.WaitsForSessions(*o) {
			o.Inhibitors.Sessions = v.sessions(ctx)
		}
	case step.FactCoordinators:
		o.Coordinators = v.coordinators(ctx)
	case step.FactShutdown:
		o.Shutdown = v.shutdown(ctx)
	case step.FactNone:
	}
	o.Sought = append(o.Sought, fact)
}

// uptime returns the uptime of the host. It is 0, which never requires a reboot, if it cannot be
// read.
func (v *observer) uptime(ctx context.Context, most time.Duration) time.Duration {
	uptime, err := host.Uptime(v.host.UptimeFile)
	if err != nil && most > 0 {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot compare the uptime with its maximum", "maximum", most)
	}
	return uptime
}

// os describes the host. It reads os-release for each reconcile, because an update may replace it.
func (v *observer) os(ctx context.Context) *step.OS {
	release, err := host.ReadOSRelease(v.host.Root)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(4).Info("Left the labels of the operating system alone", "reason", err.Error())
		return nil
	}
	return &step.OS{
		ID: host.LabelValue(release.ID), Version: host.LabelValue(release.Version), Group: host.LabelValue(release.Group),
	}
}

// settings reads the granting policy live and, if wanted, the node's entry in the ledger that the
// grant names. The settings are nil if either cannot be read.
func (v *observer) settings(ctx context.Context, grant *protocol.Grant, entry bool) (*step.Settings, *v1alpha1.LedgerEntry) {
	policy, err := policyNamed(ctx, v.policies, grant.Policy)
	holder := policy
	if err == nil && entry && grant.LedgerName() != grant.Policy {
		holder, err = policyNamed(ctx, v.policies, grant.Ledger)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot read the policy of the grant", "RebootPolicy", grant.Policy)
		return nil, nil
	}
	v.policy = lastSettings{idOf(grant), v.clock.Now(), settingsOf(policy)}
	return v.policy.of(grant), entryFor(v.node, holder.Status.Grants)
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

// entryFor returns the entry of a ledger for a node, or nil.
func entryFor(node string, ledger []v1alpha1.LedgerEntry) *v1alpha1.LedgerEntry {
	i := slices.IndexFunc(ledger, func(e v1alpha1.LedgerEntry) bool { return e.Node == node })
	if i < 0 {
		return nil
	}
	return &ledger[i]
}

// confirm queries the engines again. It returns the time since which one of them has not answered
// under this grant, or zero if all have.
func (v *observer) confirm(ctx context.Context, grant grantID) (unanswered time.Time) {
	ctx, cancel := context.WithTimeout(ctx, confirmLimit)
	defer cancel()
	err := v.reports.confirm(ctx)
	if err == nil {
		v.unconfirmed = unconfirmed{}
		return time.Time{}
	}
	if v.unconfirmed.grant != grant {
		v.unconfirmed = unconfirmed{grant, v.clock.Now()}
	}
	ctrl.LoggerFrom(ctx).Error(err, "Cannot confirm that a reboot is still needed", "since", v.unconfirmed.since)
	return v.unconfirmed.since
}

// confirmLimit is the time that engines have to answer right before a drain begins. rpm-ostree may
// have to start first.
const confirmLimit = 15 * time.Second

// unconfirmed is a grant under which an engine has not answered, and since when.
type unconfirmed struct {
	grant grantID
	since time.Time
}

// startLook is the last check of the pods before the start, for one grant.
type startLook struct {
	grant grantID
	step.Look
}

// grantID identifies a grant, because grants of two policies may have the same number.
type grantID struct {
	policy string
	seq    int64
}

func idOf(grant *protocol.Grant) grantID { return grantID{grant.Policy, grant.Seq} }

// lastSettings holds the settings that were last read from a policy for one grant, and the time of
// the read.
type lastSettings struct {
	grant grantID
	at    time.Time
	step.Settings
}

func (l lastSettings) of(grant *protocol.Grant) *step.Settings {
	if l.grant != idOf(grant) {
		return nil
	}
	return &l.Settings
}

// hostLimit is the time that logind and systemd have to answer one call. An unanswered call makes a
// fact unknown, and there must be time left in the reconcile to write the result.
const hostLimit = 15 * time.Second

func (v *observer) inhibitors(ctx context.Context) step.Inhibitors {
	ctx, cancel := context.WithTimeout(ctx, hostLimit)
	defer cancel()
	found := step.Inhibitors{Known: true}
	blocking, err := v.host.Logind.BlockInhibitors(ctx)
	if err == nil {
		found.Message = inhibited(blocking)
	} else {
		ctrl.LoggerFrom(ctx).V(4).Info("Cannot ask logind who blocks a shutdown", "reason", err.Error())
		found.Message = unasked(err)
	}
	why, err := v.host.Logind.Refuses(ctx)
	if err == nil {
		found.Refusal = refuses(why)
	} else {
		found.Refusal = unasked(err)
	}
	return found
}

// sessions names the people who are logged in, or says that they are unknown. It is empty if there are
// none.
func (v *observer) sessions(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, hostLimit)
	defer cancel()
	return loggedIn(v.host.Logind.Logins(ctx))
}

func (v *observer) coordinators(ctx context.Context) step.Coordinators {
	ctx, cancel := context.WithTimeout(ctx, hostLimit)
	defer cancel()
	other, err := v.host.Coordinators.Other(ctx)
	return step.Coordinators{Known: true, Found: other != nil, Message: rival(other, err)}
}

// shutdown reports whether logind is taking the host down. That is unknown if logind does not
// answer.
func (v *observer) shutdown(ctx context.Context) step.Shutdown {
	ctx, cancel := context.WithTimeout(ctx, hostLimit)
	defer cancel()
	underWay, err := v.host.Logind.GoingDown(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(4).Info("Cannot ask logind whether the host is going down", "reason", err.Error())
	}
	return step.Shutdown{Known: err == nil, UnderWay: underWay}
}
