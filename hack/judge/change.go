// Package judge finds in a history what may never happen. The history has every revision of Nodes, policies, pods and
// PodDisruptionBudgets, and what the machines really did. It is pure and takes a history record by record, from memory, from a watch or
// from etcd. It shares no decision with the operator: it counts nodes, limits and windows by itself.
package judge

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Who wrote a revision, where that matters.
const (
	// Admin is the field manager of an administrator's writes.
	Admin = "admin"
	// Machine removes a pod together with its machine, and by nobody's eviction.
	Machine = "machine"
)

// Change is one thing that happened: a revision of an object, or an event of a machine. Revisions come in the order of the store.
type Change struct {
	// At is when. Where the feed has no times of its own, it is when the record was seen.
	At time.Time
	// Revision is the store's number. 0: the feed has none.
	Revision int64
	// Name is that of the Node, the policy or the machine.
	Name string
	// By is the field manager that wrote a revision. Empty: not known, and no administrator.
	By string
	// Node, Policy, Pod and Budget are revisions; Gone: the object was deleted, and this is its last state.
	Node   *corev1.Node
	Policy *v1alpha1.RebootPolicy
	Pod    *corev1.Pod
	Budget *policyv1.PodDisruptionBudget
	Gone   bool
	// Host is what a machine did, and Boot the boot that ended by that.
	Host MachineEvent
	Boot string
}

// ChangeOf is a revision of an object: of a Node, a policy, a pod or a PodDisruptionBudget.
func ChangeOf(object metav1.Object, at time.Time, gone bool) Change {
	r := Change{At: at, Name: object.GetName(), Gone: gone}
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

// MachineEvent is what a machine did.
type MachineEvent string

// The events of machines.
const (
	// Staged: an update waits for a reboot.
	Staged MachineEvent = "staged an update"
	// Rebooted: the machine went down because logind was asked.
	Rebooted MachineEvent = "was rebooted"
	// Lost: the machine went down by itself.
	Lost MachineEvent = "lost its power"
	// Scrapped: there is no such machine any more, and what waited on it never comes.
	Scrapped MachineEvent = "was scrapped"
)

// Rule is one of those that no history may break.
type Rule string

// The rules.
const (
	Limit        Rule = "never more nodes disrupted than the limit"
	Semaphore    Rule = "grants are those of a bounded semaphore"
	Ledger       Rule = "nobody begins outside the ledger"
	Release      Rule = "an entry leaves its ledger when its node is in no attempt"
	Governs      Rule = "a policy grants to nodes that it governs"
	Unavailable  Rule = "no grant where other nodes use up the limit"
	Domain       Rule = "no grant beside those of another domain"
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

// Violation is a rule that was broken, when, and how.
type Violation struct {
	At time.Time
	// Revision is the store's. 0: the feed has none, or it is not one write that broke the rule.
	Revision int64
	Rule     Rule
	How      string
}

// String is a line for people.
func (v Violation) String() string {
	when := v.At.UTC().Format(time.RFC3339)
	if v.Revision > 0 {
		when += fmt.Sprintf(", revision %d", v.Revision)
	}
	return fmt.Sprintf("%s: %s: %s", when, v.Rule, v.How)
}
