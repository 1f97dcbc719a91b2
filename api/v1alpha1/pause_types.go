package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pause stops new grants.
type Pause struct {
	// reason is shown wherever the pause is reported, such as Black Friday.
	// If it is absent, no reason is shown.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// until is the time at which the pause ends by itself, such as 2026-12-27T00:00:00Z.
	// If it is absent, the pause lasts until you remove it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 0",message="until must be a time, such as 2026-12-27T00:00:00Z"
	Until *metav1.Time `json:"until,omitempty"` // the format allows times that Go cannot read; the rule refuses them
}

// InForce reports whether the pause stops new grants at a time. An absent pause does not.
func (p *Pause) InForce(now time.Time) bool {
	return p != nil && (p.Until == nil || now.Before(p.Until.Time))
}

// End returns when the pause ends by itself, or the zero time if it does not, or only after the year
// 9999, which JSON cannot write.
func (p *Pause) End() time.Time {
	if p.Until == nil || p.Until.UTC().Year() > LastYear {
		return time.Time{}
	}
	return p.Until.Time
}

// PausedAt reports whether the pause of the policy stops new grants at a time.
func (s *RebootPolicySpec) PausedAt(now time.Time) bool {
	return s.Pause.InForce(now) && !s.UrgentOrDefault().All.Ignores(UrgentIgnoresPause, now)
}
