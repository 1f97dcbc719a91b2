package v1alpha1

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Defaults of the spec. They are documented on the fields and applied by the accessors below, never written into
// objects: what a user left out stays visibly left out.
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

// ModeOrDefault is the mode in force.
func (s *RebootPolicySpec) ModeOrDefault() Mode { return cmp.Or(s.Mode, ModeEnforce) }

// MaxUnavailableOrDefault is the limit as written, before it is scaled to a number of nodes.
func (s *RebootPolicySpec) MaxUnavailableOrDefault() intstr.IntOrString {
	if most := section(s.Concurrency).MaxUnavailable; most != nil {
		return *most
	}
	return intstr.FromInt32(1)
}

// Shared is the name of the policy whose limit counts. Empty: its own.
func (s *RebootPolicySpec) Shared() string { return section(s.Concurrency).Shared }

// OwnLimit is what limits the nodes of this policy beside the limit that it shares. Nil: nothing does.
func (s *RebootPolicySpec) OwnLimit() *intstr.IntOrString {
	if s.Shared() == "" {
		return nil
	}
	return s.Concurrency.MaxUnavailable
}

// TopologyKey is the node label by which reboots keep to one domain at a time. Empty: no such rule.
func (s *RebootPolicySpec) TopologyKey() string { return section(s.Concurrency).TopologyKey }

// Spacing is how long after a rebooted node is back in service the next reboot may start. 0: at once.
func (s *RebootPolicySpec) Spacing() time.Duration {
	return durationOr(section(s.Concurrency).Spacing, 0)
}

// AutoscalerGraceOrDefault is how long a node keeps the annotations for autoscalers after its granted reboot has ended.
func (s *RebootPolicySpec) AutoscalerGraceOrDefault() time.Duration {
	return durationOr(section(s.Autoscaler).Grace, DefaultAutoscalerGrace)
}

// MaxFailuresOrDefault is how many failed nodes halt the policy.
func (s *RebootPolicySpec) MaxFailuresOrDefault() int32 {
	if s.MaxFailures == nil {
		return DefaultMaxFailures
	}
	return *s.MaxFailures
}

// DrainOrDefault is the drain section; an absent one is the empty one.
func (s *RebootPolicySpec) DrainOrDefault() Drain { return section(s.Drain) }

// RebootOrDefault is the reboot section; an absent one is the empty one.
func (s *RebootPolicySpec) RebootOrDefault() Reboot { return section(s.Reboot) }

// UrgentOrDefault is the urgent section; an absent one is the empty one.
func (s *RebootPolicySpec) UrgentOrDefault() Urgent { return section(s.Urgent) }

// HooksOrDefault is the hooks section; an absent one is the empty one.
func (s *RebootPolicySpec) HooksOrDefault() Hooks { return section(s.Hooks) }

// TimeoutOrDefault is how long each phase of hooks may take.
func (h Hooks) TimeoutOrDefault() time.Duration { return durationOr(h.Timeout, DefaultHooksTimeout) }

// PrometheusGates are the queries that are asked before each grant.
func (s *RebootPolicySpec) PrometheusGates() []PrometheusGate { return section(s.Gates).Prometheus }

// FailurePolicyOrDefault is what it means when the gate cannot be asked.
func (g PrometheusGate) FailurePolicyOrDefault() Obstacle {
	return cmp.Or(g.FailurePolicy, ObstacleBlock)
}

// ObjectGates are the expressions about objects that are checked before each grant.
func (s *RebootPolicySpec) ObjectGates() []ObjectGate { return section(s.Gates).Objects }

// BlockingPods select the pods that keep their node from being rebooted.
func (s *RebootPolicySpec) BlockingPods() []BlockingPod { return section(s.Gates).BlockingPods }

// TaintEffectOrDefault is the effect of the pending taint on nodes that wait for pods of gates.blockingPods. Empty: there is no rule.
func (s *RebootPolicySpec) TaintEffectOrDefault() corev1.TaintEffect {
	var strictest corev1.TaintEffect
	for _, b := range s.BlockingPods() {
		if effect := cmp.Or(b.TaintEffect, corev1.TaintEffectPreferNoSchedule); strictest != corev1.TaintEffectNoSchedule {
			strictest = effect
		}
	}
	return strictest
}

// TimeoutOrDefault is how long the drain may take.
func (d Drain) TimeoutOrDefault() time.Duration { return durationOr(d.Timeout, DefaultDrainTimeout) }

// LeadTimeOrDefault is how long a node is cordoned before the first pod is asked to leave.
func (d Drain) LeadTimeOrDefault() time.Duration { return durationOr(d.LeadTime, 0) }

// VolumeDetachTimeoutOrDefault is how long to wait for the volumes of evicted pods to detach.
func (d Drain) VolumeDetachTimeoutOrDefault() time.Duration {
	return durationOr(d.VolumeDetachTimeout, DefaultDetachTimeout)
}

// OnTimeoutOrDefault is what happens when the drain takes longer.
func (d Drain) OnTimeoutOrDefault() DrainTimeoutAction { return cmp.Or(d.OnTimeout, DrainTimeoutAbort) }

// ClosedBudgetsOrDefault is what happens to nodes with pods whose budget allows no eviction.
func (d Drain) ClosedBudgetsOrDefault() ClosedBudgetPolicy {
	return cmp.Or(d.ClosedBudgets, ClosedBudgetsTry)
}

// TriesClosedBudgets reports whether a drain begins although a budget allows no eviction, and gives
// up if the budget stays closed.
func (d Drain) TriesClosedBudgets() bool {
	return d.OnTimeoutOrDefault() == DrainTimeoutAbort && d.ClosedBudgetsOrDefault() == ClosedBudgetsTry
}

// LoadBalancersOrDefault is what external load balancers learn of a reboot.
func (d Drain) LoadBalancersOrDefault() LoadBalancers {
	return cmp.Or(d.LoadBalancers, LoadBalancersIgnore)
}

// EmptyDirDataOrDefault reports whether pods with emptyDir volumes may go.
func (d Drain) EmptyDirDataOrDefault() PodDisposal { return cmp.Or(d.EmptyDirData, PodDisposalDelete) }

// UnmanagedPodsOrDefault reports whether pods without a controller may go.
func (d Drain) UnmanagedPodsOrDefault() PodDisposal { return cmp.Or(d.UnmanagedPods, PodDisposalBlock) }

// ActionOrDefault is how the pods of the rule leave.
func (r DrainRule) ActionOrDefault() DrainAction { return cmp.Or(r.Action, DrainEvict) }

// TimeoutOrDefault is how long the reboot may take.
func (r Reboot) TimeoutOrDefault() time.Duration { return durationOr(r.Timeout, DefaultRebootTimeout) }

// SettleOrDefault is how long a rebooted node must stay Ready.
func (r Reboot) SettleOrDefault() time.Duration { return durationOr(r.Settle, DefaultSettle) }

// InhibitorsOrDefault is what a block inhibitor means.
func (r Reboot) InhibitorsOrDefault() Obstacle { return cmp.Or(r.Inhibitors, ObstacleBlock) }

// CoordinatorsOrDefault is what another program means that may reboot the host.
func (r Reboot) CoordinatorsOrDefault() Obstacle {
	return cmp.Or(r.Coordinators, ObstacleBlock)
}

// SoakOrDefault is how long each rebooted node of the ring must be back in service before a later ring starts. 0: it need not.
func (r Ring) SoakOrDefault() time.Duration { return durationOr(r.Soak, 0) }

// TimeZoneOrDefault is the zone of the window's wall clock.
func (w Window) TimeZoneOrDefault() string { return cmp.Or(w.TimeZone, DefaultTimeZone) }

// TimeZoneOrDefault is the zone of the blackout's dates.
func (b Blackout) TimeZoneOrDefault() string { return cmp.Or(b.TimeZone, DefaultTimeZone) }

// section is a part of the spec; an absent one is the empty one.
func section[T any](s *T) (is T) {
	if s != nil {
		is = *s
	}
	return is
}

func durationOr(d *metav1.Duration, fallback time.Duration) time.Duration {
	if d == nil {
		return fallback
	}
	return d.Duration
}
