package v1alpha1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// Urgent lets reboots start at hours that the policy otherwise forbids.
type Urgent struct {
	// until is when this ends by itself, such as 2026-12-02T06:00:00Z.
	// Reboots in progress then are finished.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 0",message="until must be a time such as 2026-12-02T06:00:00Z"
	Until metav1.Time `json:"until"` // the format allows times that Go cannot read; the rule refuses them

	// reason is shown wherever this is reported, such as "CVE-2026-12345".
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.trim() != ''",message="urgent needs a reason: it is shown wherever this is reported"
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

// Ignores reports whether something does not count at an instant. An absent Urgent ignores nothing.
func (u *Urgent) Ignores(what UrgentIgnore, now time.Time) bool {
	return u != nil && now.Before(u.Until.Time) && slices.Contains(u.Ignore, what)
}

// PausedAt reports whether the pause of the policy stops new grants at an instant.
func (s *RebootPolicySpec) PausedAt(now time.Time) bool {
	return s.Pause.InForce(now) && !s.Urgent.Ignores(UrgentIgnoresPause, now)
}
