package protocol

import (
	"errors"
	"fmt"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// AgentReport holds what speaks against a reboot of the node, according to its agent.
type AgentReport struct {
	// BlockedBy are the reasons of the agent, in the order of the checks. A policy may ignore some
	// of them.
	BlockedBy []Blocker `json:"blockedBy,omitempty"`
	// Preflight is the answer to the manager's request about the pods of the node, or nil if there
	// is none yet.
	Preflight *PreflightReport `json:"preflight,omitempty"`
}

// ParseAgentReport reads the report of the agent. It returns the zero AgentReport if there is none,
// and an error if it is not valid, in which case nothing is known.
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

// String formats the report as the value of its annotation, which is empty if there is nothing to
// report.
func (r AgentReport) String() string {
	if len(r.BlockedBy) == 0 && r.Preflight == nil {
		return ""
	}
	return format(r)
}

// Blocker is a reason of the agent why its node should not reboot now.
type Blocker struct {
	// Reason is one of the reasons of RebootPermitted, such as Inhibited.
	Reason v1alpha1.Reason `json:"reason"`
	// Message tells people what stands in the way, and what to do.
	Message string `json:"message"`
}

// validate returns an error for a reason that no condition accepts.
func (b Blocker) validate() error {
	if b.Reason == "" {
		return errors.New("reason must be set")
	}
	if !b.Reason.IsValid() {
		return errReason
	}
	return nil
}

// Preflight is the manager's request to the agent of a node whose turn may come: to report which
// pods stand in the way of its reboot, according to the policy. It stays until the reboot is over,
// or until something else keeps the node waiting.
type Preflight struct {
	// Policy is the RebootPolicy that governs the node.
	Policy string `json:"policy"`
	// Revision is a hash of what the policy says about pods. An answer to another revision is
	// stale.
	Revision string `json:"revision"`
}

// String formats the request as the value of its annotation.
func (p Preflight) String() string { return format(p) }

// ParsePreflight reads the manager's request. It returns nil, nil if there is none.
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
	// MaxNamedPods is the most pods of one kind that a PreflightReport names.
	MaxNamedPods = 5
	// MaxPodReasonBytes is the longest reason of a pod in a PreflightReport.
	MaxPodReasonBytes = 256
)

// PreflightReport is the agent's answer to a Preflight. There is none if nothing stands in the way,
// and the policy has no gates.blockingPods.
type PreflightReport struct {
	// Policy and Revision are those of the request.
	Policy   string `json:"policy"`
	Revision string `json:"revision"`
	// BootID is the boot in which the agent looked. An answer from another boot is stale.
	BootID string `json:"bootID"`
	// Blocking are the running pods that gates.blockingPods select.
	Blocking *NamedPods `json:"blocking,omitempty"`
	// Kept are the pods that drain.unmanagedPods or drain.emptyDirData keep on the node, so that a
	// drain would end at once.
	Kept *NamedPods `json:"kept,omitempty"`
	// Guarded are the pods that no eviction can remove, even after a cordon, so that a drain would
	// time out: two PodDisruptionBudgets cover them, or one whose status is unknown, or they have
	// been terminating for too long.
	Guarded *NamedPods `json:"guarded,omitempty"`
	// Closed are the pods whose PodDisruptionBudget allows no eviction even with every pod healthy.
	// Some programs open it, or move the pod, once the node is cordoned.
	Closed *NamedPods `json:"closed,omitempty"`
	// Problem says why the agent does not know, and is empty if it does.
	Problem string `json:"problem,omitempty"`
}

// NamedPods names some pods, and counts all of them.
type NamedPods struct {
	// Count is the number of all pods.
	Count int32 `json:"count"`
	// Pods are the first MaxNamedPods of the pods, by namespace and name.
	Pods []NamedPod `json:"pods"`
}

// NamedPod is a pod, and the reason why it stands in the way.
type NamedPod struct {
	// Pod is namespace/name.
	Pod string `json:"pod"`
	// Why tells people the reason in at most MaxPodReasonBytes, and is empty if there is nothing to
	// add.
	Why string `json:"why,omitempty"`
}

// validate returns an error for an answer that reports nothing. Nil is valid.
func (r *PreflightReport) validate() error {
	if r == nil {
		return nil
	}
	if r.Policy == "" || r.Revision == "" || r.BootID == "" {
		return errors.New("policy, revision and bootID must be set")
	}
	for _, pods := range []*NamedPods{r.Blocking, r.Kept, r.Guarded, r.Closed} {
		if pods != nil && (len(pods.Pods) == 0 || len(pods.Pods) > MaxNamedPods || int(pods.Count) < len(pods.Pods)) {
			return fmt.Errorf("1 to %d pods must be named, and count be at least as many", MaxNamedPods)
		}
	}
	return nil
}
