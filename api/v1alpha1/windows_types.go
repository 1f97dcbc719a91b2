package v1alpha1

// Window is a period that begins on certain days at a wall-clock time, and keeps its length across clock changes.
// If a clock change skips the start, the window opens right after the gap. If it repeats the start, the window opens once.
type Window struct {
	// name identifies the window in status and messages, such as weeknights.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must consist of lower-case letters, digits and -, and begin and end with a letter or digit, such as weeknights"
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// days are the days on which the window starts: Mon, Tue, Wed, Thu, Fri, Sat and Sun.
	// A window that starts on Sat at 22:00 and lasts 6h ends on Sunday at 04:00.
	// If the list is absent or empty, the window starts every day.
	// Example: [Mon, Tue, Wed, Thu].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	Days []Day `json:"days,omitempty"`

	// weeksOfMonth limits the start to the n-th such weekday of the month: 1 to 5, or -1 for the last.
	// For example, days [Tue] and weeksOfMonth [2] start on the second Tuesday of each month.
	// If it is absent, the window starts every week.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=6
	// +kubebuilder:validation:XValidation:rule="self.all(w, w == -1 || (w >= 1 && w <= 5))",message="weeksOfMonth must be 1 to 5, or -1 for the last"
	WeeksOfMonth []int32 `json:"weeksOfMonth,omitempty"`

	// start is the time of day in timeZone at which the window opens, as HH:MM from 00:00 to 23:59, such as 22:00.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="start must be a time of day as HH:MM, from 00:00 to 23:59, such as 22:00"
	Start string `json:"start"`

	// duration is the length of the window, such as 90m or 6h.
	// It is at most 7d, and the end is not part of the window.
	// +required
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$') && [timestamp(self.contains('d') ? 86400 * int(self.substring(0, self.indexOf('d'))) : 0) - timestamp(0) + duration('0s' + self.substring(self.indexOf('d') + 1))].all(d, d > duration('0s') && d <= duration('168h'))",message="duration must be more than 0 and at most 7d, such as 90m or 6h"
	Duration Duration `json:"duration"`

	// timeZone is an IANA name, such as Europe/Berlin.
	// Defaults to UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self != 'Local' && self.matches('^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && timestamp('2024-01-01T00:00:00Z').getHours(self) >= 0",message="timeZone must be an IANA name, such as UTC or Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`
}

// Day is a day of the week.
// +kubebuilder:validation:Enum=Mon;Tue;Wed;Thu;Fri;Sat;Sun
type Day string
