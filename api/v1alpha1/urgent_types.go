package v1alpha1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Urgent lists the reboots that may start although windows, blackouts or a pause forbid it.
// They never pass maxUnavailable, the guard of control-plane nodes, PodDisruptionBudgets, gates or hooks.
type Urgent struct {
	// all makes the reboots of all nodes urgent until a time, such as for a kernel that must be replaced today.
	// If it is absent, only requested and overdue apply.
	// Example: {until: "2026-12-02T06:00:00Z", reason: CVE-2026-12345, ignore: [Windows, Blackouts]}.
	// +optional
	All *UrgentPeriod `json:"all,omitempty"`

	// requested makes the reboot of a node urgent if the reason of its request begins with "urgent:".
	// `kubectl reboot request NODE --urgent` writes such a request, and the reboot ends it.
	// If requested is absent, such a node waits like any other.
	// Example: {ignore: [Windows, Blackouts]}.
	// +optional
	Requested *UrgentNodes `json:"requested,omitempty"`

	// overdue makes the reboot of a node urgent once the node is past the deadline.
	// If it is absent, such a node waits like any other.
	// Example: {ignore: [Windows]}.
	// +optional
	Overdue *UrgentNodes `json:"overdue,omitempty"`
}

// UrgentPeriod makes the reboots of all nodes urgent until a time.
type UrgentPeriod struct {
	// until is the time at which the reboots cease to be urgent, such as 2026-12-02T06:00:00Z.
	// Reboots that are in progress then are finished.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 0",message="until must be a time, such as 2026-12-02T06:00:00Z"
	Until metav1.Time `json:"until"` // the format allows times that Go cannot read; the rule refuses them

	// reason is shown wherever the urgency is reported, such as "CVE-2026-12345".
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.trim() != ''",message="reason must not be empty, because it is shown wherever the urgency is reported: give one, such as CVE-2026-12345"
	Reason string `json:"reason"`

	// ignore lists what urgent reboots ignore:
	// - Windows: they may start outside the windows.
	// - Blackouts: they may start on the dates of blackouts.
	// - Pause: they may start while spec.pause is in force.
	// Example: [Windows, Blackouts].
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Enum=Windows;Blackouts;Pause
	Ignore []UrgentIgnore `json:"ignore"`
}

// UrgentNodes says what the reboots of some nodes ignore.
type UrgentNodes struct {
	// ignore lists what urgent reboots ignore:
	// - Windows: they may start outside the windows.
	// - Blackouts: they may start on the dates of blackouts.
	// A pause always counts.
	// Example: [Windows, Blackouts].
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="'Windows' in self",message="ignore must be [Windows] or [Windows, Blackouts]"
	// +kubebuilder:validation:items:Enum=Windows;Blackouts
	Ignore []UrgentIgnore `json:"ignore"`
}

// UrgentIgnore is a rule that an urgent reboot ignores.
type UrgentIgnore string

const (
	// UrgentIgnoresWindows lets reboots start outside the windows.
	UrgentIgnoresWindows UrgentIgnore = "Windows"
	// UrgentIgnoresBlackouts lets reboots start on the dates of blackouts.
	UrgentIgnoresBlackouts UrgentIgnore = "Blackouts"
	// UrgentIgnoresPause lets reboots start while spec.pause is in force.
	UrgentIgnoresPause UrgentIgnore = "Pause"
)

// Ignores reports whether all reboots ignore something at a time. An absent UrgentPeriod ignores nothing.
func (u *UrgentPeriod) Ignores(limit UrgentIgnore, now time.Time) bool {
	return u != nil && now.Before(u.Until.Time) && slices.Contains(u.Ignore, limit)
}

// Ignores reports whether the reboots of these nodes ignore something. An absent UrgentNodes ignores nothing.
func (u *UrgentNodes) Ignores(limit UrgentIgnore) bool {
	return u != nil && slices.Contains(u.Ignore, limit)
}
