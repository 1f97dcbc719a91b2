// Package judge searches a history for broken rules. The history has every revision of Nodes,
// policies, pods and PodDisruptionBudgets, and what the machines really did. The package is pure
// and takes records one by one, from memory, a watch or etcd. It shares no decisions with the
// operator: it counts nodes, limits and windows by itself.
package judge

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Writers of revisions that the rules distinguish.
const (
	// Admin is the field manager of an administrator's writes.
	Admin = "admin"
	// Machine marks a pod that was removed together with its machine, without an eviction.
	Machine = "machine"
)

// Change is one thing that happened: a revision of an object, or an event of a machine. Revisions
// come in the order of the store.
type Change struct {
	// At is the time of the change, or the time when it was seen if the feed has no times.
	At time.Time
	// Revision is the number given by the store, or 0 if the feed has none.
	Revision int64
	// Name is the name of the Node, the policy or the machine.
	Name string
	// By is the field manager that wrote the revision. It is empty if unknown, but always set for
	// an administrator.
	By string
	// Node, Policy, Pod and Budget hold the revision. Gone means that the object was deleted, and
	// that this is its last state.
	Node   *corev1.Node
	Policy *v1alpha1.RebootPolicy
	Pod    *corev1.Pod
	Budget *policyv1.PodDisruptionBudget
	Gone   bool
	// Host is the event of a machine, and Boot is the boot that it ended.
	Host MachineEvent
	Boot string
}

// ChangeOf returns the change for a revision of a Node, a policy, a pod or a PodDisruptionBudget.
func ChangeOf(object metav1.Object, t time.Time, gone bool) Change {
	r := Change{At: t, Name: object.GetName(), Gone: gone}
	switch object := object.(type) {
	case *corev1.Node:
		r.Node = object
	case *v1alpha1.RebootPolicy:
		r.Policy = object
	case *corev1.Pod:
		r.Pod = object
	case *policyv1.PodDisruptionBudget:
		r.Budget = object
	}
	return r
}

// MachineEvent is an event of a machine.
type MachineEvent string

// The events of machines.
const (
	// Staged means that an update waits for a reboot.
	Staged MachineEvent = "staged an update"
	// Returned means that the need for the last reboot is back, although nobody changed the machine.
	Returned MachineEvent = "needs its reboot again"
	// Repaired means that the machine no longer needs a reboot, without having had one.
	Repaired MachineEvent = "was repaired"
	// Rebooted means that the machine went down because of a call to logind.
	Rebooted MachineEvent = "was rebooted"
	// Lost means that the machine went down by itself.
	Lost MachineEvent = "lost its power"
	// Scrapped means that the machine is gone for good, with any update that waited on it.
	Scrapped MachineEvent = "was scrapped"
)

// Rule is a rule that no history may break.
type Rule string

// The rules.
const (
	Limit        Rule = "never more nodes disrupted than the limit"
	Semaphore    Rule = "grants are those of a bounded semaphore"
	Ledger       Rule = "nobody begins outside the ledger"
	Release      Rule = "an entry leaves its ledger when its node is in no attempt"
	Governs      Rule = "a policy grants to nodes that it governs"
	Unavailable  Rule = "no grant where other nodes use up the limit"
	Domain       Rule = "no grant while another domain holds grants"
	ControlPlane Rule = "never two control-plane nodes disrupted"
	Fence        Rule = "a grant is for one boot of one machine"
	Granted      Rule = "nothing is rebooted but under a grant"
	Need         Rule = "exactly one reboot for each need"
	Window       Rule = "nothing is granted outside of a window"
	Ownership    Rule = "no cordon of an administrator is undone"
	Budget       Rule = "no pod is evicted past its PodDisruptionBudget"
	Rest         Rule = "nothing is left behind"
	Convergence  Rule = "it converges once faults end"
)

// Violation describes when and how a rule was broken.
type Violation struct {
	At time.Time
	// Revision is the revision that broke the rule, or 0 if it is unknown or not a single write.
	Revision int64
	Rule     Rule
	How      string
}

// String returns the violation as one line.
func (v Violation) String() string {
	when := v.At.UTC().Format(time.RFC3339)
	if v.Revision > 0 {
		when += fmt.Sprintf(", revision %d", v.Revision)
	}
	return fmt.Sprintf("%s: %s: %s", when, v.Rule, v.How)
}
