package protocol

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Engines is what the engines of the agent have reported, for the next process of the agent: an engine may not repeat what it
// reported, may have forgotten the version, or may be gone. In another boot none of that holds. Absent: none has reported.
type Engines struct {
	// BootID is the boot in which they reported.
	BootID string `json:"bootID"`
	// Reported are the engines that the host has, in their order.
	Reported []EngineRecord `json:"reported"`
}

// EngineRecord is what one engine has reported.
type EngineRecord struct {
	Name string `json:"name"`
	// Asks reports whether it asks for a reboot.
	Asks bool `json:"asks,omitempty"`
	// Again reports whether it has asked since before the last granted reboot, which has not ended the need.
	Again bool `json:"again,omitempty"`
	// Until is when a need ends by itself that was received in a broadcast. Absent: it lasts.
	Until *metav1.Time `json:"until,omitempty"`
	// Version is what runs after the reboot. Absent: unknown.
	Version string `json:"version,omitempty"`
	// Running is what Version is to replace, as the engine names it. Absent: unknown, or the version of os-release.
	Running string `json:"running,omitempty"`
}

// ParseEngines reads what the engines have reported. It returns nil, nil when there is none, and an error when it is not one of
// ours: then nothing is known.
func ParseEngines(annotations map[string]string) (*Engines, error) {
	return parse[Engines](annotations, v1alpha1.AnnotationEngines)
}

// validate accepts any content: the agent compares the boot by itself.
func (*Engines) validate() error { return nil }

// String formats what the engines have reported as its annotation's value.
func (e Engines) String() string { return format(e) }
