package v1alpha1

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Requests configures what asks for a reboot beside updates.
type Requests struct {
	// urgent configures what a request means whose reason begins with "urgent:".
	// Such a request is what `kubectl reboot request NODE --urgent` writes.
	// - Allow: the node goes before the others, and windows and blackouts do not count for it.
	// - Refuse: the node waits like any other.
	// A pause, maxUnavailable, the guard of control-plane nodes, PodDisruptionBudgets, gates and hooks count in any case.
	// For example: urgent: Allow.
	// Absent: Refuse.
	// +optional
	Urgent UrgentRequestPolicy `json:"urgent,omitempty"`

	// maxUptime is how long a node may be up before it needs a reboot, such as 720h.
	// Each node becomes due in the last tenth of it, at an instant that depends on its name.
	// This keeps a fleet from becoming due at once.
	// The need waits like any other, and condition RebootRequired has reason MaxUptime.
	// Absent: no node needs a reboot because of its uptime.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(ms|s|m|h))+$') && duration(self) >= duration('24h') && duration(self) <= duration('87600h')",message="maxUptime must be a duration of at least 24h and at most 87600h, such as 720h"
	MaxUptime *metav1.Duration `json:"maxUptime,omitempty"`
}

// AllowsUrgentRequests reports whether an urgent request passes windows and blackouts.
func (s *RebootPolicySpec) AllowsUrgentRequests() bool {
	return section(s.Requests).Urgent == UrgentRequestsAllow
}

// UrgentPrefix begins the value of AnnotationRebootRequested where the request is urgent. The reason follows it.
const UrgentPrefix = "urgent:"

// UrgentlyRequested reports whether the annotation of the node asks for an urgent reboot, and why. A label cannot: it has no
// place for the prefix.
func UrgentlyRequested(node *corev1.Node) (why string, urgent bool) {
	why, urgent = strings.CutPrefix(node.Annotations[AnnotationRebootRequested], UrgentPrefix)
	return strings.TrimSpace(why), urgent
}

const (
	// minMaxUptime is the least that requests.maxUptime may be.
	minMaxUptime = 24 * time.Hour
	// uptimeSpread says over which part of maxUptime nodes become due: the last tenth.
	uptimeSpread = 10
)

// MaxUptimeOf is how long a node may be up before it needs a reboot: maxUptime less up to a tenth, by a hash of its name.
// 0: for ever.
func (s *RebootPolicySpec) MaxUptimeOf(node string) time.Duration {
	if s.Requests == nil || s.Requests.MaxUptime == nil || s.Requests.MaxUptime.Duration < minMaxUptime {
		return 0
	}
	most := s.Requests.MaxUptime.Round(time.Second)
	sum := sha256.Sum256([]byte(node)) // unlike fnv, it spreads names that differ in their last digit
	share := float64(binary.BigEndian.Uint32(sum[:])) / (1 << 32)
	return most - time.Duration(share*float64(most/uptimeSpread)).Truncate(time.Second)
}

// ParseMaxUptime is how long AnnotationMaxUptime lets the node be up. 0: for ever. So is a value that no manager writes.
func ParseMaxUptime(annotations map[string]string) time.Duration {
	most, err := time.ParseDuration(annotations[AnnotationMaxUptime])
	if err != nil || most < minMaxUptime-minMaxUptime/uptimeSpread {
		return 0
	}
	return most
}
