package v1alpha1

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Defaults of the spec. The accessors below apply them. Nothing writes them into objects, so users see
// what they have left out.
const (
	DefaultTimeZone        = "UTC"
	DefaultDrainTimeout    = 20 * time.Minute
	DefaultRebootTimeout   = 30 * time.Minute
	DefaultSettle          = 60 * time.Second
	DefaultMaxFailures     = 2
	DefaultHooksTimeout    = time.Hour
	DefaultDetachTimeout   = 5 * time.Minute
	DefaultAutoscalerGrace = 15 * time.Minute
)

// SessionsLast is the longest time for which a drained node waits for people who are logged in.
const SessionsLast = 10 * time.Minute

// ModeOrDefault returns the mode that applies.
func (s *RebootPolicySpec) ModeOrDefault() Mode { return cmp.Or(s.Mode, ModeEnforce) }

// MaxUnavailableOrDefault returns the limit before it is scaled to a number of nodes.
func (s *RebootPolicySpec) MaxUnavailableOrDefault() intstr.IntOrString {
	if most := section(s.Concurrency).MaxUnavailable; most != nil {
		return *most
	}
	return intstr.FromInt32(1)
}

// Shared returns the name of the policy whose limit applies, or the empty string for this policy.
func (s *RebootPolicySpec) Shared() string { return section(s.Concurrency).Shared }

// OwnLimit returns what limits the nodes of this policy besides the limit that it shares, or nil.
func (s *RebootPolicySpec) OwnLimit() *intstr.IntOrString {
	if s.Shared() == "" {
		return nil
	}
	return s.Concurrency.MaxUnavailable
}

// TopologyKey returns the node label whose values reboot one at a time, or the empty string.
func (s *RebootPolicySpec) TopologyKey() string { return section(s.Concurrency).TopologyKey }

// Spacing returns how long after a rebooted node is back in service the next reboot may start.
func (s *RebootPolicySpec) Spacing() time.Duration {
	return durationOr(section(s.Concurrency).Spacing, 0)
}

// FirstBatch returns how a run begins, or nil if it begins with as many nodes as may be unavailable.
func (s *RebootPolicySpec) FirstBatch() *FirstBatch { return section(s.Concurrency).FirstBatch }

// NodesOrDefault returns the number of nodes before it is scaled to the selected nodes.
func (f FirstBatch) NodesOrDefault() intstr.IntOrString {
	if f.Nodes == nil {
		return intstr.FromInt32(1)
	}
	return *f.Nodes
}

// PendingTaintOrDefault returns which taint nodes have that wait for their turn.
func (s *RebootPolicySpec) PendingTaintOrDefault() PendingTaint {
	return cmp.Or(section(s.Concurrency).PendingTaint, PendingTaintPreferNoSchedule)
}

// PendingTaintEffect returns the effect of TaintPending on nodes that wait for their turn, or the empty
// string if they get no taint.
func (s *RebootPolicySpec) PendingTaintEffect() corev1.TaintEffect {
	if s.PendingTaintOrDefault() == PendingTaintNone {
		return ""
	}
	return corev1.TaintEffectPreferNoSchedule
}

// AutoscalerGraceOrDefault returns how long a node keeps the annotations for autoscalers after its
// granted reboot.
func (s *RebootPolicySpec) AutoscalerGraceOrDefault() time.Duration {
	return durationOr(section(s.Autoscaler).Grace, DefaultAutoscalerGrace)
}

// MaxFailuresOrDefault returns how many failed nodes halt the policy.
func (s *RebootPolicySpec) MaxFailuresOrDefault() int32 {
	if s.MaxFailures == nil {
		return DefaultMaxFailures
	}
	return *s.MaxFailures
}

// DrainOrDefault returns the drain section, or an empty one if it is absent.
func (s *RebootPolicySpec) DrainOrDefault() Drain { return section(s.Drain) }

// RebootOrDefault returns the reboot section, or an empty one if it is absent.
func (s *RebootPolicySpec) RebootOrDefault() Reboot { return section(s.Reboot) }

// UrgentOrDefault returns the urgent section, or an empty one if it is absent.
func (s *RebootPolicySpec) UrgentOrDefault() Urgent { return section(s.Urgent) }

// HooksOrDefault returns the hooks section, or an empty one if it is absent.
func (s *RebootPolicySpec) HooksOrDefault() Hooks { return section(s.Hooks) }

// TimeoutOrDefault returns how long each phase of hooks may take.
func (h Hooks) TimeoutOrDefault() time.Duration { return durationOr(h.Timeout, DefaultHooksTimeout) }

// PrometheusGates returns the queries that run before each grant.
func (s *RebootPolicySpec) PrometheusGates() []PrometheusGate { return section(s.Gates).Prometheus }

// FailurePolicyOrDefault returns what happens while the query fails.
func (g PrometheusGate) FailurePolicyOrDefault() Obstacle {
	return cmp.Or(g.FailurePolicy, ObstacleBlock)
}

// ObjectGates returns the expressions about objects that are checked before each grant.
func (s *RebootPolicySpec) ObjectGates() []ObjectGate { return section(s.Gates).Objects }

// BlockingPods returns the selectors of pods that keep their node from being rebooted.
func (s *RebootPolicySpec) BlockingPods() []BlockingPod { return section(s.Gates).BlockingPods }

// TaintEffectOrDefault returns the effect of TaintPending on nodes that wait for pods of
// gates.blockingPods, or the empty string without such a gate or taint. A gate without an effect has
// that of nodes that wait for their turn.
func (s *RebootPolicySpec) TaintEffectOrDefault() corev1.TaintEffect {
	var strictest corev1.TaintEffect
	for _, b := range s.BlockingPods() {
		if effect := cmp.Or(b.TaintEffect, s.PendingTaintEffect()); strictest == "" || effect == corev1.TaintEffectNoSchedule {
			strictest = effect
		}
	}
	return strictest
}

// TimeoutOrDefault returns how long the drain may take.
func (d Drain) TimeoutOrDefault() time.Duration { return durationOr(d.Timeout, DefaultDrainTimeout) }

// LeadTimeOrDefault returns how long a node is cordoned before the first eviction.
func (d Drain) LeadTimeOrDefault() time.Duration { return durationOr(d.LeadTime, 0) }

// VolumeDetachTimeoutOrDefault returns how long to wait for the volumes of evicted pods to detach.
func (d Drain) VolumeDetachTimeoutOrDefault() time.Duration {
	return durationOr(d.VolumeDetachTimeout, DefaultDetachTimeout)
}

// OnTimeoutOrDefault returns what happens when the drain takes longer than its timeout.
func (d Drain) OnTimeoutOrDefault() DrainTimeoutAction { return cmp.Or(d.OnTimeout, DrainTimeoutAbort) }

// ClosedBudgetsOrDefault returns closedBudgets, or Try if it is not set.
func (d Drain) ClosedBudgetsOrDefault() ClosedBudgetPolicy {
	return cmp.Or(d.ClosedBudgets, ClosedBudgetsTry)
}

// TriesClosedBudgets reports whether a drain begins although a budget allows no eviction, and gives
// up if the budget stays closed.
func (d Drain) TriesClosedBudgets() bool {
	return d.OnTimeoutOrDefault() == DrainTimeoutAbort && d.ClosedBudgetsOrDefault() == ClosedBudgetsTry
}

// LoadBalancersOrDefault reports whether external load balancers leave the node out.
func (d Drain) LoadBalancersOrDefault() LoadBalancers {
	return cmp.Or(d.LoadBalancers, LoadBalancersIgnore)
}

// EmptyDirDataOrDefault returns what happens to pods with emptyDir volumes.
func (d Drain) EmptyDirDataOrDefault() PodDisposal { return cmp.Or(d.EmptyDirData, PodDisposalDelete) }

// UnmanagedPodsOrDefault returns what happens to pods without a controller.
func (d Drain) UnmanagedPodsOrDefault() PodDisposal { return cmp.Or(d.UnmanagedPods, PodDisposalBlock) }

// ActionOrDefault returns how the pods of the rule leave.
func (r DrainRule) ActionOrDefault() DrainAction { return cmp.Or(r.Action, DrainEvict) }

// TimeoutOrDefault returns how long the reboot may take.
func (r Reboot) TimeoutOrDefault() time.Duration { return durationOr(r.Timeout, DefaultRebootTimeout) }

// SettleOrDefault returns how long a rebooted node must stay Ready.
func (r Reboot) SettleOrDefault() time.Duration { return durationOr(r.Settle, DefaultSettle) }

// InhibitorsOrDefault reports whether block inhibitors count.
func (r Reboot) InhibitorsOrDefault() Obstacle { return cmp.Or(r.Inhibitors, ObstacleBlock) }

// CoordinatorsOrDefault reports whether other programs count that may reboot the host.
func (r Reboot) CoordinatorsOrDefault() Obstacle {
	return cmp.Or(r.Coordinators, ObstacleBlock)
}

// SessionsOrDefault reports whether the reboot waits for people who are logged in.
func (r Reboot) SessionsOrDefault() SessionPolicy { return cmp.Or(r.Sessions, SessionsIgnore) }

// SoakOrDefault returns how long each rebooted node of the ring must be back in service before a later
// ring starts.
func (r Ring) SoakOrDefault() time.Duration { return durationOr(r.Soak, 0) }

// TimeZoneOrDefault returns the time zone of the window.
func (w Window) TimeZoneOrDefault() string { return cmp.Or(w.TimeZone, DefaultTimeZone) }

// TimeZoneOrDefault returns the time zone of the blackout.
func (b Blackout) TimeZoneOrDefault() string { return cmp.Or(b.TimeZone, DefaultTimeZone) }

// section returns a section of the spec, or an empty one if it is absent.
func section[T any](s *T) (value T) {
	if s != nil {
		value = *s
	}
	return value
}

func durationOr(d *Duration, fallback time.Duration) time.Duration {
	if d == nil {
		return fallback
	}
	return d.Duration
}
