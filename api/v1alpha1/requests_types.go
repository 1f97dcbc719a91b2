package v1alpha1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// UrgentRequestPolicy states what an urgent request for a reboot means.
// +kubebuilder:validation:Enum=Allow;Refuse
type UrgentRequestPolicy string

const (
	// UrgentRequestsAllow lets an urgent request pass windows and blackouts.
	UrgentRequestsAllow UrgentRequestPolicy = "Allow"
	// UrgentRequestsRefuse treats an urgent request like any other.
	UrgentRequestsRefuse UrgentRequestPolicy = "Refuse"
)

// Requests configures what a request for a reboot may do.
type Requests struct {
	// urgent configures what a request means whose reason begins with "urgent:".
	// Such a request is what `kubectl reboot request NODE --urgent` writes.
	// - Allow: the node goes before the others, and windows and blackouts do not count for it.
	// - Refuse: the node waits like any other.
	// A pause, maxUnavailable, the guard of control-plane nodes, PodDisruptionBudgets, gates and hooks count in any case.
	// Absent: Refuse.
	// +optional
	Urgent UrgentRequestPolicy `json:"urgent,omitempty"`
}

// AllowsUrgentRequests reports whether an urgent request passes windows and blackouts.
func (s *RebootPolicySpec) AllowsUrgentRequests() bool {
	return s.Requests != nil && s.Requests.Urgent == UrgentRequestsAllow
}

// UrgentPrefix begins the value of AnnotationRebootRequested where the request is urgent. The reason follows it.
const UrgentPrefix = "urgent:"

// UrgentlyRequested reports whether the annotation of the node asks for an urgent reboot, and why. A label cannot: it has no
// place for the prefix.
func UrgentlyRequested(node *corev1.Node) (why string, urgent bool) {
	why, urgent = strings.CutPrefix(node.Annotations[AnnotationRebootRequested], UrgentPrefix)
	return strings.TrimSpace(why), urgent
}
