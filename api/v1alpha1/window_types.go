package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Day is a day of the week.
// +kubebuilder:validation:Enum=Mon;Tue;Wed;Thu;Fri;Sat;Sun
type Day string

// Window is a stretch of time that begins on certain days at a wall-clock time and lasts a fixed elapsed time.
//
// A start that a clock change skips is the first instant after the gap; a start that a clock change repeats is the
// first of the two, once. The duration is elapsed time, so the window keeps its length across a clock change.
type Window struct {
	// name names the window in status and messages.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// days are the days on which the window starts. Absent or empty: every day.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	Days []Day `json:"days,omitempty"`

	// weeksOfMonth limits the start to the n-th such weekday of the month: 1 to 5, or -1 for the last. Absent: all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=6
	// +kubebuilder:validation:XValidation:rule="self.all(w, w == -1 || (w >= 1 && w <= 5))",message="weeksOfMonth must be 1 to 5, or -1 for the last"
	WeeksOfMonth []int32 `json:"weeksOfMonth,omitempty"`

	// start is the wall-clock time in timeZone, as HH:MM from 00:00 to 23:59.
	// +required
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="start must be a time of day as HH:MM, from 00:00 to 23:59"
	Start string `json:"start"`

	// duration is the elapsed time for which the window is open; its end is exclusive. More than 0, at most 168h.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) > duration('0s') && duration(self) <= duration('168h')",message="duration must be more than 0 and at most 168h, such as 90m or 6h"
	Duration metav1.Duration `json:"duration"`

	// timeZone is an IANA name such as Europe/Berlin. Absent: UTC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self != 'Local' && self.matches('^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && timestamp('2024-01-01T00:00:00Z').getHours(self) >= 0",message="timeZone must be an IANA name such as UTC or Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`
}

// Blackout is a range of civil dates on which no reboot starts.
//
// +kubebuilder:validation:XValidation:rule="self.to > self.from",message="to must be after from: it is the first day on which reboots may start again"
type Blackout struct {
	// name names the blackout in status and messages.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// from is the first day, as YYYY-MM-DD, from its first instant in timeZone.
	// +required
	// +kubebuilder:validation:Format=date
	// +kubebuilder:validation:MaxLength=10
	From string `json:"from"`

	// to is the day after the last, as YYYY-MM-DD: the blackout ends with its first instant.
	// +required
	// +kubebuilder:validation:Format=date
	// +kubebuilder:validation:MaxLength=10
	To string `json:"to"`

	// timeZone is an IANA name such as Europe/Berlin. Absent: UTC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self != 'Local' && self.matches('^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && timestamp('2024-01-01T00:00:00Z').getHours(self) >= 0",message="timeZone must be an IANA name such as UTC or Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`

	// reason is told to everybody who asks why nothing reboots.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}
