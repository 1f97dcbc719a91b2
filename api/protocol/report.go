package protocol

import (
	"errors"
	"fmt"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// AgentReport is what the agent finds against a reboot of its node. Absent: nothing.
type AgentReport struct {
	// BlockedBy are the agent's own reasons, in the order of the checks: a policy may ignore some of them. Absent: there is none.
	BlockedBy []Blocker `json:"blockedBy,omitempty"`
	// Preflight is the answer to the manager's request about the pods of the node. Absent: it has not been given.
	Preflight *PreflightReport `json:"preflight,omitempty"`
}

// ParseAgentReport reads what the agent finds. It returns the zero AgentReport when there is none, and with an error when it is
// not one of ours: then nothing is known.
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

// String formats the report as its annotation's value. Empty: there is nothing to report, and no annotation.
func (r AgentReport) String() string {
	if len(r.BlockedBy) == 0 && r.Preflight == nil {
		return ""
	}
	return format(r)
}

// Blocker is one reason of the agent why its node should not be rebooted now.
type Blocker struct {
	// Reason is one of the reasons of RebootPermitted, such as Inhibited.
	Reason v1alpha1.Reason `json:"reason"`
	// Message is a sentence for people that names what is in the way, and what to do.
	Message string `json:"message"`
}

// validate refuses a reason that no condition would take.
func (b Blocker) validate() error {
	if b.Reason == "" {
		return errors.New("reason must be set")
	}
	if !b.Reason.IsValid() {
		return errReason
	}
	return nil
}

// Preflight is the manager's request to the agent of a node whose turn may come: to report which pods are in the way of its reboot.
// The agent reads the policy for it. It stays until the reboot is over, or until something else keeps the node waiting.
type Preflight struct {
	// Policy is the RebootPolicy that governs the node.
	Policy string `json:"policy"`
	// Revision represents what the policy specifies about pods: an answer to another one is stale. Only the manager knows how it is
	// made.
	Revision string `json:"revision"`
}

// String formats the request as its annotation's value.
func (p Preflight) String() string { return format(p) }

// ParsePreflight reads the manager's request. It returns nil, nil when there is none.
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
	// MaxNamedPods is how many pods of one kind a PreflightReport names.
	MaxNamedPods = 5
	// MaxPodReasonBytes bounds what a PreflightReport reports of one pod.
	MaxPodReasonBytes = 256
)

// PreflightReport is the agent's answer to a Preflight. Where the policy has no gates.blockingPods, and the agent knows that nothing is
// in the way, there is none.
type PreflightReport struct {
	// Policy and Revision are those of the request.
	Policy   string `json:"policy"`
	Revision string `json:"revision"`
	// BootID is the boot in which the agent looked. An answer of another boot is stale.
	BootID string `json:"bootID"`
	// Blocking are the running pods that gates.blockingPods select. Absent: none.
	Blocking *NamedPods `json:"blocking,omitempty"`
	// Kept are the pods that drain.unmanagedPods or drain.emptyDirData keep on the node: a drain would end at once. Absent: none.
	Kept *NamedPods `json:"kept,omitempty"`
	// Guarded are the pods that no eviction can remove, and no cordon would change that. Two PodDisruptionBudgets cover them, or one
	// whose status is unknown, or they have been terminating for too long. A drain would end by its time-out. Absent: none.
	Guarded *NamedPods `json:"guarded,omitempty"`
	// Closed are the pods whose PodDisruptionBudget allows no eviction even with every pod healthy. Some programs open it, or move the
	// pod, once the node is cordoned. Absent: none.
	Closed *NamedPods `json:"closed,omitempty"`
	// Problem states why the agent does not know. Absent: it does.
	Problem string `json:"problem,omitempty"`
}

// NamedPods are some pods, and how many there are.
type NamedPods struct {
	// Count is how many there are.
	Count int32 `json:"count"`
	// Pods are the first MaxNamedPods of them, by namespace and name.
	Pods []NamedPod `json:"pods"`
}

// NamedPod is a pod, and why it is in the way.
type NamedPod struct {
	// Pod is namespace/name.
	Pod string `json:"pod"`
	// Why is for people, at most MaxPodReasonBytes. Absent: there is nothing to add.
	Why string `json:"why,omitempty"`
}

// validate refuses an answer that reports nothing. Nil is valid.
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
