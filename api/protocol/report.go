package protocol

import (
	"errors"
	"fmt"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// AgentReport holds the agent's reasons against a reboot of its node.
type AgentReport struct {
	// BlockedBy are the agent's reasons, in the order of its checks. A policy may ignore some of
	// them.
	BlockedBy []Blocker `json:"blockedBy,omitempty"`
	// Preflight is the answer to the manager's request about the pods of the node, or nil until the
	// agent has answered.
	Preflight *PreflightReport `json:"preflight,omitempty"`
}

// ParseAgentReport reads the report of the agent. It returns the zero AgentReport if the annotation
// is absent. If it is invalid, it returns an error and nothing is known.
func ParseAgentReport(annotations map[string]string) (AgentReport, error) {
	r, err := parse[AgentReport](annotations, v1alpha1.AnnotationReport)
	if r == nil || err != nil {
		return AgentReport{}, err
	}
	return *r, nil
}

func (r *AgentReport) validate() error {
	for _, b := range r.BlockedBy {
		if err := b.validate(); err != nil {
			return err
		}
	}
	return r.Preflight.validate()
}

// String formats the report as the value of its annotation. An empty report gives an empty value.
func (r AgentReport) String() string {
	if len(r.BlockedBy) == 0 && r.Preflight == nil {
		return ""
	}
	return format(r)
}

// Blocker is one reason of the agent why its node should not reboot now.
type Blocker struct {
	// Reason is one of the reasons of RebootPermitted, such as Inhibited.
	Reason v1alpha1.Reason `json:"reason"`
	// Message tells people what prevents the reboot and what to do about it.
	Message string `json:"message"`
}

// validate returns an error if a condition would not accept the reason.
func (b Blocker) validate() error {
	if b.Reason == "" {
		return errors.New("reason must be set")
	}
	if !b.Reason.IsValid() {
		return errReason
	}
	return nil
}

// Preflight is the manager's request to an agent to report which pods would prevent a reboot of its
// node under the policy. The manager sends it to nodes whose turn may come. It stays until the
// reboot is over, or until another reason keeps the node waiting.
type Preflight struct {
	// Policy is the RebootPolicy that governs the node.
	Policy string `json:"policy"`
	// Revision is a hash of what the policy says about pods. An answer with another revision is
	// outdated.
	Revision string `json:"revision"`
	// Failed is the number of the last attempt, if the agent should also report the pods that would
	// hold up a drain now, as they did in that attempt. It is 0 otherwise.
	Failed int64 `json:"failed,omitempty"`
}

// String formats the request as the value of its annotation.
func (p Preflight) String() string { return format(p) }

// ParsePreflight reads the manager's request. It returns nil, nil if the annotation is absent.
func ParsePreflight(annotations map[string]string) (*Preflight, error) {
	return parse[Preflight](annotations, v1alpha1.AnnotationPreflight)
}

func (p *Preflight) validate() error {
	if p.Policy == "" || p.Revision == "" {
		return errors.New("policy and revision must be set")
	}
	return nil
}

const (
	// MaxNamedPods is the largest number of pods of one kind that a PreflightReport names.
	MaxNamedPods = 5
	// MaxPodReasonBytes is the longest reason of a pod in a PreflightReport.
	MaxPodReasonBytes = 256
)

// PreflightReport is the agent's answer to a Preflight. The agent does not send one if no pod
// prevents the reboot and the policy has no gates.blockingPods.
type PreflightReport struct {
	// Policy and Revision repeat those of the request.
	Policy   string `json:"policy"`
	Revision string `json:"revision"`
	// BootID is the boot in which the agent checked the pods. An answer from another boot is
	// outdated.
	BootID string `json:"bootID"`
	// Blocking are the running pods that match gates.blockingPods.
	Blocking *NamedPods `json:"blocking,omitempty"`
	// Kept are the pods that drain.unmanagedPods or drain.emptyDirData keep on the node. They would
	// end a drain at once.
	Kept *NamedPods `json:"kept,omitempty"`
	// Guarded are the pods that cannot be evicted, even after a cordon, so that a drain would time
	// out. Such a pod has two PodDisruptionBudgets, or one whose status is unknown, or has been
	// terminating for too long.
	Guarded *NamedPods `json:"guarded,omitempty"`
	// Closed are the pods whose PodDisruptionBudget allows no eviction even if every pod is
	// healthy. Some operators allow it, or move the pod, once the node is cordoned.
	Closed *NamedPods `json:"closed,omitempty"`
	// Problem says why the agent could not check the pods. It is empty if it could.
	Problem string `json:"problem,omitempty"`
	// Failed repeats that of the request. Refused are then the pods whose PodDisruptionBudget allows
	// no eviction now.
	Failed  int64      `json:"failed,omitempty"`
	Refused *NamedPods `json:"refused,omitempty"`
}

// NamedPods names some of the pods of one kind, and counts all of them.
type NamedPods struct {
	// Count is the number of all pods.
	Count int32 `json:"count"`
	// Pods are the first MaxNamedPods of the pods, by namespace and name.
	Pods []NamedPod `json:"pods"`
}

// NamedPod is a pod that prevents a reboot.
type NamedPod struct {
	// Pod is namespace/name.
	Pod string `json:"pod"`
	// Why tells people the reason in at most MaxPodReasonBytes. It is empty if the kind says
	// everything.
	Why string `json:"why,omitempty"`
}

// validate returns an error for an answer that is incomplete. Nil is valid.
func (r *PreflightReport) validate() error {
	if r == nil {
		return nil
	}
	if r.Policy == "" || r.Revision == "" || r.BootID == "" {
		return errors.New("policy, revision and bootID must be set")
	}
	for _, pods := range []*NamedPods{r.Blocking, r.Kept, r.Guarded, r.Closed, r.Refused} {
		if pods != nil && (len(pods.Pods) == 0 || len(pods.Pods) > MaxNamedPods || int(pods.Count) < len(pods.Pods)) {
			return fmt.Errorf("1 to %d pods must be named, and count be at least as many", MaxNamedPods)
		}
	}
	return nil
}
