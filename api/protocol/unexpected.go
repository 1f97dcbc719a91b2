package protocol

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UnexpectedReboot is a reboot of a host that nobody granted.
type UnexpectedReboot struct {
	// At is the time of the boot.
	At metav1.Time `json:"at"`
	// FromVersion and ToVersion are label os-version before and after it, each empty if unknown.
	FromVersion string `json:"fromVersion,omitempty"`
	ToVersion   string `json:"toVersion,omitempty"`
}
