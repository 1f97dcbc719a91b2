package protocol

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// AgentReport is what the agent finds against a reboot of its node. Absent: nothing.
type AgentReport struct {
	// Objection is the agent's own reason. Absent: it has none.
	Objection *Objection `json:"objection,omitempty"`
	// Preflight is the answer to the manager's question about the pods of the node. Absent: it has not been given.
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

func (r *AgentReport) validate() error { return cmp.Or(r.Objection.validate(), r.Preflight.validate()) }

// String formats the report as its annotation's value.
func (r AgentReport) String() string { return format(r) }

// Objection is the agent's own reason why the node should not be rebooted now.
type Objection struct {
	// Reason is one of the reasons of RebootPermitted, such as Inhibited.
	Reason v1alpha1.Reason `json:"reason"`
	// Message is a sentence for people that names what is in the way, and what to do.
	Message string `json:"message"`
	// Also are further objections, in the order of the checks, for the manager whose policy ignores this one. Absent: none.
	Also []Objection `json:"also,omitempty"`
}

// JoinObjections makes one record of objections in the order of the checks. It returns nil for none.
func JoinObjections(all []Objection) *Objection {
	if len(all) == 0 {
		return nil
	}
	first := all[0]
	first.Also = all[1:]
	return &first
}

// All are this objection and the further ones, in the order of the checks; none for nil. There is one level of them.
func (o *Objection) All() []Objection {
	if o == nil {
		return nil
	}
	all := []Objection{{Reason: o.Reason, Message: o.Message}}
	for _, also := range o.Also {
		all = append(all, Objection{Reason: also.Reason, Message: also.Message})
	}
	return all
}

// validate refuses an objection that no condition would take. Nil is valid.
func (o *Objection) validate() error {
	for _, one := range o.All() {
		if one.Reason == "" {
			return errors.New("reason must be set")
		}
		if !one.Reason.IsValid() {
			return errReason
		}
	}
	if o != nil && slices.ContainsFunc(o.Also, func(also Objection) bool { return len(also.Also) > 0 }) {
		return errors.New("a further objection has further ones")
	}
	return nil
}

// Preflight is the manager's question to the agent of a node whose turn may come: which pods are in the way of its reboot?
// The agent reads the policy for it. It stays until the reboot is over, or until something else keeps the node waiting.
type Preflight struct {
	// Policy is the RebootPolicy that governs the node.
	Policy string `json:"policy"`
	// Revision represents what the policy specifies about pods: an answer to another one is stale. Only the manager knows how it is
	// made.
	Revision string `json:"revision"`
}

// String formats the question as its annotation's value.
func (p Preflight) String() string { return format(p) }

// ParsePreflight reads the manager's question. It returns nil, nil when there is none.
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

// PreflightReport is the agent's answer to a Preflight. Where the policy has no gates.blockingPods, and nothing is in
// the way, there is none.
type PreflightReport struct {
	// Policy and Revision are those of the question.
	Policy   string `json:"policy"`
	Revision string `json:"revision"`
	// BootID is the boot in which the agent looked. An answer of another boot is stale.
	BootID string `json:"bootID"`
	// Blocking are the running pods that gates.blockingPods select. Absent: none.
	Blocking *NamedPods `json:"blocking,omitempty"`
	// Kept are the pods that drain.unmanagedPods or drain.emptyDirData keep on the node: a drain would end at once. Absent: none.
	Kept *NamedPods `json:"kept,omitempty"`
	// Guarded are the pods that no eviction can remove: by a PodDisruptionBudget that allows none even with every pod healthy,
	// by one whose status is not current, or by two of them. A drain would end by its time-out. Absent: none.
	Guarded *NamedPods `json:"guarded,omitempty"`
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
	for _, pods := range []*NamedPods{r.Blocking, r.Kept, r.Guarded} {
		if pods != nil && (len(pods.Pods) == 0 || len(pods.Pods) > MaxNamedPods || int(pods.Count) < len(pods.Pods)) {
			return fmt.Errorf("1 to %d pods must be named, and count be at least as many", MaxNamedPods)
		}
	}
	return nil
}
