package status

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// LookAtManager is the command that shows whether the manager runs, whatever its namespace.
const LookAtManager = "kubectl get pods -A -l app.kubernetes.io/name=reboot-operator"

// Kind is what a notice is about.
type Kind = plan.AttentionKind

// The kinds of notices that are not about one policy as it was decided about.
const (
	// ManagerDown means that no manager holds the Lease: nothing goes on.
	ManagerDown Kind = "ManagerDown"
	// ManagerLags means that the manager has not done yet what it would do at once.
	ManagerLags Kind = "ManagerLags"
	// NoPolicy means that nodes need a reboot and no policy selects them.
	NoPolicy Kind = "NoPolicy"
)

// Notice is something that needs attention, and a command that helps.
type Notice struct {
	Kind Kind `json:"kind"`
	// Reason is why nodes fail or wait, empty if the kind says it.
	Reason  v1alpha1.Reason `json:"reason,omitempty"`
	Message string          `json:"message"`
	Command string          `json:"command,omitempty"`
	Nodes   []string        `json:"nodes,omitempty"`
}

// Chosen reports whether nobody has to act: a person has asked for this state, or it passes in a
// moment.
func (n Notice) Chosen() bool { return n.Kind == ManagerLags || plan.Attention{Kind: n.Kind}.Chosen() }

func (n Notice) equal(other Notice) bool { return n.Kind == other.Kind && n.Message == other.Message }

// notices returns what keeps a policy from going on by itself, most important first.
func notices(f fleet.Fleet, policy *v1alpha1.RebootPolicy, p plan.Plan, s *Policy) []Notice {
	var list []Notice
	for _, a := range p.Attention(policy, f.Now) {
		list = append(list, Notice{Kind: a.Kind, Reason: a.Reason, Message: a.Message, Command: a.Command, Nodes: a.Nodes})
	}
	if f.Manager.Down(f.Now) { // the one notice about it says why the rest waits
		return list
	}
	if policy.Status.ObservedGeneration < policy.Generation {
		list = append(list, Notice{
			Kind: ManagerLags, Command: LookAtManager,
			Message: "the manager has not taken in the last change of policy " + policy.Name + "; if this stays, it may not run",
		})
	}
	if len(s.Due) > 0 {
		list = append(list, Notice{
			Kind: ManagerLags, Command: LookAtManager, Nodes: s.Due,
			Message: fmt.Sprintf("nothing blocks %s: the manager grants at once; if this stays, it may not run", terminal.Some(s.Due)),
		})
	}
	return list
}

// Attention returns the notices of the cluster and of all policies. One that several of them have
// is there once.
func (s Status) Attention() []Notice {
	all := slices.Clone(s.Notices)
	for _, p := range s.Policies {
		for _, n := range p.Notices {
			if !slices.ContainsFunc(all, n.equal) {
				all = append(all, n)
			}
		}
	}
	return all
}

// ManagerTrouble says that no manager runs, or that nobody knows. It is empty if one runs.
func (s Status) ManagerTrouble() string {
	if len(s.Notices) > 0 && s.Notices[0].Kind == ManagerDown {
		return s.Notices[0].Message
	}
	return ""
}

// ofCluster returns the notices that are about no policy.
func (s Status) ofCluster(f fleet.Fleet) []Notice {
	var list []Notice
	if text := f.Manager.Trouble(f.Now); text != "" {
		list = append(list, Notice{Kind: ManagerDown, Message: text, Command: LookAtManager})
	}
	if len(s.Ungoverned) > 0 && len(s.Policies) > 0 {
		list = append(list, Notice{
			Kind: NoPolicy, Nodes: s.Ungoverned, Command: "kubectl reboot explain " + s.Ungoverned[0],
			Message: fmt.Sprintf("%s: no policy selects them, and they need a reboot", terminal.Some(s.Ungoverned)),
		})
	}
	return list
}

// Refusal is the condition of a policy that reports refused writes about granted reboots. Nil: none is refused.
func Refusal(policy *v1alpha1.RebootPolicy) *metav1.Condition {
	c := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionProgressing)
	if c == nil || c.Reason != string(v1alpha1.ReasonNodeWriteRefused) {
		return nil
	}
	return c
}
