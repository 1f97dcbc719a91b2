package v1alpha1

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeadlineAction is what changes for a node that is past its deadline.
// +kubebuilder:validation:Enum=Report;IgnoreWindows
type DeadlineAction string

const (
	// DeadlineReports reports the node, and lets it go before the others.
	DeadlineReports DeadlineAction = "Report"
	// DeadlineIgnoresWindows also lets it go outside the windows.
	DeadlineIgnoresWindows DeadlineAction = "IgnoreWindows"
)

// Deadline is how soon a node that needs a reboot should have had it.
type Deadline struct {
	// after is how long after its need began a node should have been rebooted, such as 336h.
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
