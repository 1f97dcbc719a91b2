package v1alpha1

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Urgent lets reboots start at hours that the policy otherwise forbids.
type Urgent struct {
	// until is when spec.urgent ends, such as 2026-12-02T06:00:00Z.
	// Reboots in progress then are finished.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 0",message="until must be a time such as 2026-12-02T06:00:00Z"
	Until metav1.Time `json:"until"` // the format allows times that Go cannot read; the rule refuses them

	// reason is shown wherever spec.urgent is reported, such as "CVE-2026-12345".
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.trim() != ''",message="urgent needs a reason: it is shown wherever spec.urgent is reported"
	Reason string `json:"reason"`

	// ignore lists what does not count until then:
	// - Windows: reboots may start outside the windows.
	// - Blackouts: reboots may start on the dates of blackouts.
	// - Pause: reboots may start while spec.pause is in force.
	// For example: [Windows, Blackouts].
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Ignore []UrgentIgnore `json:"ignore"`
}

// UrgentIgnore is what an urgent policy ignores.
// +kubebuilder:validation:Enum=Windows;Blackouts;Pause
type UrgentIgnore string

const (
	// UrgentIgnoresWindows lets reboots start outside the windows.
	UrgentIgnoresWindows UrgentIgnore = "Windows"
	// UrgentIgnoresBlackouts lets reboots start on the dates of blackouts.
	UrgentIgnoresBlackouts UrgentIgnore = "Blackouts"
	// UrgentIgnoresPause lets reboots start while spec.pause is in force.
	UrgentIgnoresPause UrgentIgnore = "Pause"
)

// Ignores reports whether something does not count at an instant. An absent Urgent ignores nothing.
func (u *Urgent) Ignores(what UrgentIgnore, now time.Time) bool {
	return u != nil && now.Before(u.Until.Time) && slices.Contains(u.Ignore, what)
}

// PausedAt reports whether the pause of the policy stops new grants at an instant.
func (s *RebootPolicySpec) PausedAt(now time.Time) bool {
	return s.Pause.InForce(now) && !s.Urgent.Ignores(UrgentIgnoresPause, now)
}

// Requests configures requests for reboots.
type Requests struct {
	// urgent configures what a request means whose reason begins with "urgent:".
	// Such a request is what `kubectl reboot request NODE --urgent` writes.
	// - Allow: the node goes before the others, and windows and blackouts do not count for it.
	// - Refuse: the node waits like any other.
	// A pause, maxUnavailable, the guard of control-plane nodes, PodDisruptionBudgets, gates and hooks count in any case.
	// For example: urgent: Allow.
	// Absent: Refuse.
	// +optional
	Urgent UrgentRequestPolicy `json:"urgent,omitempty"`
}

// UrgentRequestPolicy states what an urgent request for a reboot means.
// +kubebuilder:validation:Enum=Allow;Refuse
type UrgentRequestPolicy string

const (
	// UrgentRequestsAllow lets an urgent request pass windows and blackouts.
	UrgentRequestsAllow UrgentRequestPolicy = "Allow"
	// UrgentRequestsRefuse treats an urgent request like any other.
	UrgentRequestsRefuse UrgentRequestPolicy = "Refuse"
)

// AllowsUrgentRequests reports whether an urgent request passes windows and blackouts.
func (s *RebootPolicySpec) AllowsUrgentRequests() bool {
	return section(s.Requests).Urgent == UrgentRequestsAllow
}

// UrgentPrefix begins the value of AnnotationRebootRequested where the request is urgent. The reason follows it.
const UrgentPrefix = "urgent:"

// UrgentlyRequested reports whether the annotation of the node asks for an urgent reboot, and why. A label cannot: it has no
// place for the prefix.
func UrgentlyRequested(node *corev1.Node) (why string, urgent bool) {
	why, urgent = strings.CutPrefix(node.Annotations[AnnotationRebootRequested], UrgentPrefix)
	return strings.TrimSpace(why), urgent
}

const (
	// minMaxUptime is the least that maxUptime may be.
	minMaxUptime = 24 * time.Hour
	// uptimeSpread is over which part of maxUptime nodes become due: the last tenth.
	uptimeSpread = 10
)

// MaxUptimeOf is how long a node may be up before it needs a reboot. It is maxUptime less up to a tenth, by a hash of the node's
// name. 0: for ever.
func (s *RebootPolicySpec) MaxUptimeOf(node string) time.Duration {
	if s.MaxUptime == nil || s.MaxUptime.Duration < minMaxUptime {
		return 0
	}
	most := s.MaxUptime.Round(time.Second)
	sum := sha256.Sum256([]byte(node)) // unlike fnv, it spreads names that differ in their last digit
	share := float64(binary.BigEndian.Uint32(sum[:])) / (1 << 32)
	return most - time.Duration(share*float64(most/uptimeSpread)).Truncate(time.Second)
}

// ParseMaxUptime is how long AnnotationMaxUptime lets the node be up. 0: for ever, also for a value that no manager writes.
func ParseMaxUptime(annotations map[string]string) time.Duration {
	most, err := time.ParseDuration(annotations[AnnotationMaxUptime])
	if err != nil || most < minMaxUptime-minMaxUptime/uptimeSpread {
		return 0
	}
	return most
}

// Deadline is how soon a node that needs a reboot should be rebooted.
type Deadline struct {
	// after is how long after its need began a node should be rebooted at the latest, such as 336h.
	// It counts from the last transition of the node's condition RebootRequired to True, or from a reboot since then that did not end the need.
	// A need whose beginning is unknown has no deadline.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) >= duration('1h') && duration(self) <= duration('8760h')",message="after must be a duration of at least 1h and at most 8760h, such as 336h"
	After metav1.Duration `json:"after"`

	// action is what changes for a node that is past its deadline. Such a node goes before the others in any case.
	// - Report: nothing else.
	// - IgnoreWindows: the node may be rebooted outside the windows. Blackouts count, and so does everything else.
	// For example: action: IgnoreWindows.
	// Absent: Report.
	// +optional
	Action DeadlineAction `json:"action,omitempty"`
}

// DeadlineAction is what changes for a node that is past its deadline.
// +kubebuilder:validation:Enum=Report;IgnoreWindows
type DeadlineAction string

const (
	// DeadlineReports reports the node, and lets it go before the others.
	DeadlineReports DeadlineAction = "Report"
	// DeadlineIgnoresWindows also lets it go outside the windows.
	DeadlineIgnoresWindows DeadlineAction = "IgnoreWindows"
)

// ActionOrDefault is what changes for a node that is past its deadline.
func (d *Deadline) ActionOrDefault() DeadlineAction { return cmp.Or(d.Action, DeadlineReports) }

// IgnoresWindows reports whether a node that is past its deadline may be rebooted outside the windows.
func (d *Deadline) IgnoresWindows() bool {
	return d != nil && d.ActionOrDefault() == DeadlineIgnoresWindows
}

// Ends is when the deadline of a need ends that began at an instant. Zero: there is no deadline, or the instant is unknown. A clock
// that shows a year before 2000 was never set.
func (d *Deadline) Ends(began time.Time) time.Time {
	if d == nil || began.UTC().Year() < FirstYear {
		return time.Time{}
	}
	return began.Add(d.After.Duration)
}

// NearFrom is from when on a deadline that ends at an instant is near: three quarters of it have passed.
func (d *Deadline) NearFrom(ends time.Time) time.Time { return ends.Add(-d.After.Duration / 4) }
