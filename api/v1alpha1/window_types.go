package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Window is a period that begins on certain days at a wall-clock time and lasts a fixed elapsed time.
//
// A start that a clock change skips is the first instant after the gap.
// A start that a clock change repeats is the first of the two, once.
// The duration is elapsed time, so the window keeps its length across a clock change.
type Window struct {
	// name identifies the window in status and messages, such as weeknights.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be lower-case letters, digits and -, a letter or digit first and last, such as weeknights"
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// days are the days on which the window starts: Mon, Tue, Wed, Thu, Fri, Sat and Sun.
	// A window that starts on Sat at 22:00 and lasts 6h ends on Sunday at 04:00.
	// For example: [Mon, Tue, Wed, Thu].
	// Absent or empty: every day.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	Days []Day `json:"days,omitempty"`

	// weeksOfMonth limits the start to the n-th such weekday of the month: 1 to 5, or -1 for the last.
	// For example, days [Tue] and weeksOfMonth [2] start on the second Tuesday of each month.
	// Absent: every week.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=6
	// +kubebuilder:validation:XValidation:rule="self.all(w, w == -1 || (w >= 1 && w <= 5))",message="weeksOfMonth must be 1 to 5, or -1 for the last"
	WeeksOfMonth []int32 `json:"weeksOfMonth,omitempty"`

	// start is the time of day in timeZone at which the window opens, as HH:MM from 00:00 to 23:59, such as 22:00.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="start must be a time of day as HH:MM, from 00:00 to 23:59"
	Start string `json:"start"`

	// duration is how long the window is open, such as 90m or 6h.
	// It is more than 0 and at most 168h.
	// The end is not part of the window.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) > duration('0s') && duration(self) <= duration('168h')",message="duration must be more than 0 and at most 168h, such as 90m or 6h"
	Duration metav1.Duration `json:"duration"`

	// timeZone is an IANA name such as Europe/Berlin.
	// Absent: UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self != 'Local' && self.matches('^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && timestamp('2024-01-01T00:00:00Z').getHours(self) >= 0",message="timeZone must be an IANA name such as UTC or Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`
}

// Day is a day of the week.
// +kubebuilder:validation:Enum=Mon;Tue;Wed;Thu;Fri;Sat;Sun
type Day string

// Blackout is a range of civil dates on which no reboot starts.
//
// +kubebuilder:validation:XValidation:rule="self.to > self.from",message="to must be after from: it is the first day on which reboots may start again"
type Blackout struct {
	// name identifies the blackout in status and messages, such as year-end.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be lower-case letters, digits and -, a letter or digit first and last, such as year-end"
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// from is the first day of the blackout, from its first instant in timeZone, such as "2026-12-19".
	// +required
	// +kubebuilder:validation:Format=date
	// +kubebuilder:validation:MaxLength=32
	From string `json:"from"`

	// to is the day after the last day of the blackout, such as "2027-01-04".
	// The blackout ends with the first instant of that day.
	// +required
	// +kubebuilder:validation:Format=date
	// +kubebuilder:validation:MaxLength=32
	To string `json:"to"`

	// timeZone is an IANA name such as Europe/Berlin.
	// Absent: UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self != 'Local' && self.matches('^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && timestamp('2024-01-01T00:00:00Z').getHours(self) >= 0",message="timeZone must be an IANA name such as UTC or Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`

	// reason is shown wherever the blackout is reported, such as year-end freeze.
	// Absent: no reason is shown.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// Pause stops new grants.
type Pause struct {
	// reason is shown wherever the pause is reported, such as Black Friday.
	// Absent: no reason is shown.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// until is when the pause ends by itself, such as 2026-12-27T00:00:00Z.
	// Absent: the pause lasts until you remove it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.getFullYear() >= 0",message="until must be a time such as 2026-12-27T00:00:00Z"
	Until *metav1.Time `json:"until,omitempty"` // the format allows times that Go cannot read; the rule refuses them
}

// InForce reports whether the pause stops new grants at an instant. An absent one does not.
func (p *Pause) InForce(now time.Time) bool {
	return p != nil && (p.Until == nil || now.Before(p.Until.Time))
}

// End is when the pause ends by itself. Zero: it does not, or only beyond the year 9999, which JSON cannot write.
func (p *Pause) End() time.Time {
	if p.Until == nil || p.Until.UTC().Year() > LastYear {
		return time.Time{}
	}
	return p.Until.Time
}

// WindowStatus is the state of the windows.
type WindowStatus struct {
	// state is one of:
	// - Always: there are no windows, so reboots may begin at any hour.
	// - Open: a window is open.
	// - Closed: no window is open, or a blackout is in force.
	// - Paused: the policy is paused, regardless of the windows.
	// - Urgent: reboots may begin by spec.urgent.all.
	// - Halted: the policy halted after failures, regardless of the windows.
	// +required
	// +kubebuilder:validation:MaxLength=16
	State WindowState `json:"state"`
	// open is whether windows and blackouts allow a reboot to start now.
	// +required
	Open bool `json:"open"`
	// name of the open window, or of the blackout in force.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// closesAt is when the open window closes.
	// Absent: not within 400 days, or closed.
	// +optional
	ClosesAt *metav1.Time `json:"closesAt,omitempty"`
	// opensAt is the next opening.
	// Absent: open, or none within 400 days.
	// +optional
	OpensAt *metav1.Time `json:"opensAt,omitempty"`
}

// WindowState is the state of the windows.
type WindowState string

const (
	// WindowAlways means there are no windows: always open.
	WindowAlways WindowState = "Always"
	// WindowOpen means a window is open.
	WindowOpen WindowState = "Open"
	// WindowClosed means no window is open, or a blackout is in force.
	WindowClosed WindowState = "Closed"
	// WindowPaused means the policy is paused, regardless of the windows.
	WindowPaused WindowState = "Paused"
	// WindowUrgent means reboots may start under spec.urgent.all.
	WindowUrgent WindowState = "Urgent"
	// WindowHalted means the policy halted after failures, regardless of the windows.
	WindowHalted WindowState = "Halted"
)
