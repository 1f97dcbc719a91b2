package step

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// lookEvery is the interval at which a node that requires a reboot checks inhibitors and
// coordinators. Changes that the host signals are handled at once, so this costs no requests to the
// API server.
const lookEvery = time.Minute

// NodeStatus is the agent's report on its Node, apart from the progress. It is written with one
// patch of nodes/status.
type NodeStatus struct {
	// Conditions are the conditions to write. Others stay as they are. Their times are set when
	// they are written.
	Conditions []corev1.NodeCondition
	// Labels and Annotations are those to write. A nil value removes one, and others stay as they
	// are.
	Labels      map[string]*string
	Annotations map[string]*string
	// Versioned are the keys that may be changed only in the observed version of the Node.
	Versioned []string
	// Removed are conditions of the manager that are removed in the same write.
	Removed []corev1.NodeConditionType
	// New are the reasons against a reboot that the Node does not show yet and that an
	// administrator has to resolve.
	New []protocol.Blocker
	// Again is the time when the status may change without any event, or zero if it cannot.
	Again time.Time
}

// Essential returns the status without annotations, for a Node on which other programs have left no
// room for them.
func (s NodeStatus) Essential() NodeStatus {
	s.Annotations = nil
	return s
}

// NodeStatusOf returns the status for the Node. Until all engines have reported, it contains only
// the progress of an attempt, so that the first status after a boot is one write.
func NodeStatusOf(o Observation) NodeStatus {
	if o.Engines == nil && o.UnderWay() {
		return NodeStatus{Conditions: maintenance(o), Again: again(o, true)}
	}
	if o.Engines == nil {
		return NodeStatus{}
	}
	annotations := map[string]*string{v1alpha1.AnnotationBootedAt: o.bootedAt()}
	var versioned []string
	byAnnotation, byLabel := fulfilled(o, request(o)), fulfilled(o, labelled(o))
	if byAnnotation {
		annotations[v1alpha1.AnnotationRebootRequested] = nil
		versioned = append(versioned, v1alpha1.AnnotationRebootRequested) // because a new request may have replaced it
		o.Requested = false
	}
	o.Labelled = o.Labelled && !byLabel
	asks := need(o)
	asking := asks.Status == corev1.ConditionTrue
	report, known, settles := agentReport(o, asking)
	if known {
		annotations[v1alpha1.AnnotationReport] = nil
		if text := report.String(); text != "" {
			annotations[v1alpha1.AnnotationReport] = &text
		}
		versioned = append(versioned, v1alpha1.AnnotationReport) // because parts of it may be copied from the Node
	}
	annotations[v1alpha1.AnnotationEngines] = nil
	if engines := engineRecord(o); engines != nil {
		annotations[v1alpha1.AnnotationEngines] = new(engines.String())
	}
	labels := labels(o.OS, asking)
	if byLabel {
		labels[v1alpha1.LabelRebootRequested] = nil
		versioned = append(versioned, v1alpha1.LabelRebootRequested)
	}
	conditions := append([]corev1.NodeCondition{asks}, maintenance(o)...)
	return NodeStatus{
		Conditions:  conditions,
		Labels:      labels,
		Annotations: annotations,
		Versioned:   versioned,
		Removed:     removed(o, conditions),
		New:         added(o.Reported.BlockedBy, report.BlockedBy),
		Again:       timing.Earliest(again(o, asking), settles, o.dueAt(), fleetLockEnds(o), conditionsChange(o)),
	}
}

// removed returns the manager's conditions that a status makes outdated: its answer to a need that
// has ended, and the announcement of a maintenance that is over. They are removed in the same
// write, so that nobody sees one without the other.
func removed(o Observation, reported []corev1.NodeCondition) []corev1.NodeConditionType {
	var kinds []corev1.NodeConditionType
	falls := o.isTrue(v1alpha1.NodeRebootRequired) && v1alpha1.NodeCondition(reported, v1alpha1.NodeRebootRequired).Status != corev1.ConditionTrue
	if falls && o.Condition(v1alpha1.NodeRebootPermitted).Type != "" {
		kinds = append(kinds, v1alpha1.NodeRebootPermitted)
	}
	ends := o.isTrue(corev1.NodeMaintenanceInProgress) && v1alpha1.NodeCondition(reported, corev1.NodeMaintenanceInProgress).Status == corev1.ConditionFalse
	if ends && v1alpha1.IsPlanned(o.Condition(corev1.NodeMaintenancePlanned)) {
		kinds = append(kinds, corev1.NodeMaintenancePlanned)
	}
	return kinds
}

// labels returns the labels for selectors. Unknown properties of the host have no label. If
// os-release cannot be read, the labels stay as they are.
func labels(os *OS, asking bool) map[string]*string {
	l := map[string]*string{v1alpha1.LabelRebootRequired: nil}
	if asking {
		l[v1alpha1.LabelRebootRequired] = new("true")
	}
	if os != nil {
		for key, value := range map[string]string{
			v1alpha1.LabelOSID: os.ID, v1alpha1.LabelOSVersion: os.Version, v1alpha1.LabelOSGroup: os.Group,
		} {
			l[key] = nil
			if value != "" {
				l[key] = &value
			}
		}
	}
	return l
}

// agentReport returns the agent's reasons against a reboot. Parts that are unknown now stay as they
// are on the Node. known is false if both are. The report may change at settles.
func agentReport(o Observation, asking bool) (r protocol.AgentReport, known bool, settles time.Time) {
	blockedBy, certain := blockedBy(o, asking)
	preflight, answered, settles := preflightReport(o)
	r = o.Reported
	if certain {
		r.BlockedBy = blockedBy
	}
	if answered {
		r.Preflight = preflight
	}
	return r, certain || answered, settles
}

// lasting are the reasons that do not go away by themselves.
var lasting = []v1alpha1.Reason{v1alpha1.ReasonUpdateNotApplied, v1alpha1.ReasonCoordinatorConflict}

// added returns the lasting reasons of a report that are not in the previous one.
func added(before, after []protocol.Blocker) []protocol.Blocker {
	var all []protocol.Blocker
	for _, b := range after {
		if slices.Contains(lasting, b.Reason) && !slices.Contains(before, b) {
			all = append(all, b)
		}
	}
	return all
}

// blockedBy returns what keeps the host from going down, according to the agent or, past the point
// of no return, to logind. If known is false, the reported reasons stay.
func blockedBy(o Observation, asking bool) (all []protocol.Blocker, known bool) {
	refused := o.Call.Refusals > 0 && o.Call.AcceptedAt.IsZero()
	switch {
	case o.InPhase(protocol.PhaseRebooting) && notInForce(o) != "":
		return []protocol.Blocker{{Reason: v1alpha1.ReasonGrantWithdrawn, Message: notInForce(o)}}, true
	case o.InPhase(protocol.PhaseRebooting):
		return []protocol.Blocker{{Reason: v1alpha1.ReasonRebootRefused, Message: o.Call.Message}}, refused
	case !asking && !o.InPhase(protocol.PhaseDraining):
		return atRest(o), o.Coordinators.Known
	case !o.Inhibitors.Known, !o.Coordinators.Known:
		return nil, false
	}
	return blockers(o), true
}

// blockers returns the agent's reasons in the order of its checks. It returns all of them, because
// the agent reads no policy before it has a grant. The manager leaves out those that the policy
// ignores.
func blockers(o Observation) []protocol.Blocker {
	var all []protocol.Blocker
	if u, from := updateAsked(o); u != nil && u.VainReboots >= maxVainReboots {
		all = append(all, notApplied(o.Node, *u, from))
	}
	if o.hasJustBooted() && !o.UnderWay() {
		all = append(all, protocol.Blocker{Reason: v1alpha1.ReasonJustBooted, Message: fmt.Sprintf(
			"The host has just booted. Its drain waits until %s, because an earlier reboot could undo an update that is not marked as good yet.",
			timing.Instant(o.booted().Add(bootSettles)))})
	}
	if m := o.Inhibitors.Message; m != "" {
		all = append(all, protocol.Blocker{Reason: v1alpha1.ReasonInhibited, Message: m})
	}
	if m := o.Inhibitors.Refusal; m != "" {
		all = append(all, protocol.Blocker{Reason: v1alpha1.ReasonRebootRefused, Message: m})
	}
	if m := o.Coordinators.Message; m != "" {
		all = append(all, protocol.Blocker{Reason: v1alpha1.ReasonCoordinatorConflict, Message: m})
	}
	if mayStart(o) && o.policy() != nil && !protocol.Listed(o.Record, o.Entry) {
		all = append(all, withdrawn(*o.Record.Grant, o.Entry))
	}
	return all
}

// atRest returns the reasons of a node that needs no reboot: a coordinator that may reboot it
// anyway. At rest, an unknown coordinator does not delay anything.
func atRest(o Observation) []protocol.Blocker {
	if !o.Coordinators.Found {
		return nil
	}
	return []protocol.Blocker{{Reason: v1alpha1.ReasonCoordinatorConflict, Message: o.Coordinators.Message}}
}

// withdrawn returns the reason not to begin under a grant that the Node shows but the ledger does
// not hold. The entry is the node's entry in the ledger, or nil.
func withdrawn(grant protocol.Grant, entry *v1alpha1.LedgerEntry) protocol.Blocker {
	why := "does not hold it"
	if entry != nil && entry.Seq == grant.Seq && entry.WithdrawnAt != nil {
		why = "holds it as withdrawn since " + timing.Instant(entry.WithdrawnAt.Time)
	}
	return protocol.Blocker{Reason: v1alpha1.ReasonGrantWithdrawn, Message: fmt.Sprintf(
		"The agent does not use grant %d: the ledger of policy %s %s. The manager cancels the grant.", grant.Seq, grant.LedgerName(), why)}
}

// again returns the time when the drain has to be reported, or the host to be checked again, or
// zero.
func again(o Observation, asking bool) time.Time {
	switch {
	case o.InPhase(protocol.PhaseDraining):
		if from := reportedFrom(o); o.Now.Before(from) {
			return from
		}
		if drainGoesOn(o) {
			_, then := drainReported(o)
			return then
		}
		_, then := volumesReported(o)
		return then
	case asking && !o.InPhase(protocol.PhaseRebooting):
		if o.hasJustBooted() {
			return timing.Earliest(o.Now.Add(lookEvery), o.Now.Add(bootSettles-o.Uptime))
		}
		return o.Now.Add(lookEvery)
	}
	return time.Time{}
}
