package v1alpha1

// Blackout is a range of civil dates on which no reboot starts, once or every year.
//
// +kubebuilder:validation:XValidation:rule="size(self.from) == size(self.to)",message="from and to must both have a year, or neither, which repeats the blackout every year"
// +kubebuilder:validation:XValidation:rule="size(self.from) == 5 ? self.to != self.from : self.to > self.from",message="to must be after from, because it is the first day on which reboots may start again: set it to the day after the last day"
type Blackout struct {
	// name identifies the blackout in status and messages, such as year-end.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must consist of lower-case letters, digits and -, and begin and end with a letter or digit, such as year-end"
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// from is the first day of the blackout, from its first instant in timeZone, such as "2026-12-19".
	// Without a year, as in "12-19", the blackout repeats every year.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{4}-)?[0-9]{2}-[0-9]{2}$') && timestamp((size(self) == 5 ? '2024-' + self : self) + 'T00:00:00Z').getFullYear() >= 0",message="from must be a date as YYYY-MM-DD, or as MM-DD for every year, such as 2026-12-19 or 12-19"
	// +kubebuilder:validation:MaxLength=32
	From string `json:"from"`

	// to is the day after the last day of the blackout, such as "2027-01-04", or "01-04" if from has no year.
	// The blackout ends with the first instant of that day.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{4}-)?[0-9]{2}-[0-9]{2}$') && timestamp((size(self) == 5 ? '2024-' + self : self) + 'T00:00:00Z').getFullYear() >= 0",message="to must be a date as YYYY-MM-DD, or as MM-DD for every year, such as 2027-01-04 or 01-04"
	// +kubebuilder:validation:MaxLength=32
	To string `json:"to"`

	// timeZone is an IANA name, such as Europe/Berlin.
	// Defaults to UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self != 'Local' && self.matches('^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && timestamp('2024-01-01T00:00:00Z').getHours(self) >= 0",message="timeZone must be an IANA name, such as UTC or Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`

	// reason is shown wherever the blackout is reported, such as year-end freeze.
	// If it is absent, no reason is shown.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}
