package status

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/attention"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
)

// LookAtManager is the command that shows whether the manager runs, in any namespace.
const LookAtManager = "kubectl get pods -A -l app.kubernetes.io/name=reboot-operator"

// LeaveDryRun returns the command that lets a policy grant reboots.
func LeaveDryRun(policy string) string {
	return fmt.Sprintf(`kubectl patch rbp %s --type=merge -p '{"spec":{"mode":"Enforce"}}'`, policy)
}

// Kind is the kind of a notice.
type Kind = attention.Kind

// The kinds of notices that do not come from the plan of one policy.
const (
	// ManagerDown means that no manager holds the Lease, so nothing happens.
	ManagerDown Kind = "ManagerDown"
	// ManagerLags means that the manager has not yet done what it would do at once.
	ManagerLags Kind = "ManagerLags"
	// NoPolicy means that no policy exists, or that nodes need a reboot and no policy selects them.
	NoPolicy Kind = "NoPolicy"
	// NoNodes means that a policy governs no node.
	NoNodes Kind = "NoNodes"
	// DryRun means that nodes wait for a policy that grants nothing.
	DryRun Kind = "DryRun"
)

// Notice is something that needs attention, with a command that helps.
type Notice struct {
	Kind Kind `json:"kind"`
	// Reason says why nodes fail or wait. It is empty if the kind says it.
	Reason  v1alpha1.Reason `json:"reason,omitempty"`
	Message string          `json:"message"`
	Command string          `json:"command,omitempty"`
	Nodes   []string        `json:"nodes,omitempty"`
}

// Chosen reports whether nobody has to act, because a person chose this state or it ends in a
// moment.
func (n Notice) Chosen() bool {
	return n.Kind == ManagerLags || n.Kind == NoNodes || n.Kind == DryRun || attention.Item{Kind: n.Kind}.Chosen()
}

func (n Notice) equal(other Notice) bool { return n.Kind == other.Kind && n.Message == other.Message }

// notices returns everything that stops a policy, most important first.
func notices(f fleet.Fleet, policy *v1alpha1.RebootPolicy, p plan.Plan, s *Policy) []Notice {
	var list []Notice
	for _, a := range attention.Of(&p, policy, f.Now) {
		list = append(list, Notice{Kind: a.Kind, Reason: a.Reason, Message: a.Message, Command: a.Command, Nodes: a.Nodes})
	}
	if s.Nodes.Selected+s.Nodes.InConflict+len(p.Withheld) == 0 && len(f.Views()) > 0 && policy.DeletionTimestamp == nil {
		list = append(list, Notice{Kind: NoNodes, Command: "kubectl edit rbp " + policy.Name, Message: "policy " + policy.Name + " governs no node"})
	}
	if s.Mode == v1alpha1.ModeDryRun && s.Nodes.Pending > 0 {
		list = append(list, Notice{
			Kind: DryRun, Command: LeaveDryRun(policy.Name),
			Message: fmt.Sprintf("policy %s is in mode DryRun, so it grants nothing; %s", policy.Name, message.Count(s.Nodes.Pending, "node waits", "nodes wait")),
		})
	}
	if f.Manager.Down(f.Now) { // the notice about the manager explains all the others
		return list
	}
	if policy.Status.ObservedGeneration < policy.Generation {
		list = append(list, Notice{
			Kind: ManagerLags, Command: LookAtManager,
			Message: "the manager has not acted on the last change of policy " + policy.Name + "; if this does not change, check whether it runs",
		})
	}
	if len(s.Due) > 0 {
		list = append(list, Notice{
			Kind: ManagerLags, Command: LookAtManager, Nodes: s.Due,
			Message: fmt.Sprintf("nothing blocks %s, so the manager should grant now; if this does not change, check whether it runs", message.Some(s.Due)),
		})
	}
	return list
}

// Attention returns the notices of the cluster and of all policies, without duplicates.
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

// ManagerTrouble says that no manager runs, or that this is unknown. It is empty if one runs.
func (s Status) ManagerTrouble() string {
	if len(s.Notices) > 0 && s.Notices[0].Kind == ManagerDown {
		return s.Notices[0].Message
	}
	return ""
}

// ofCluster returns the notices that do not concern a policy.
func (s Status) ofCluster(f fleet.Fleet) []Notice {
	var list []Notice
	if text := f.Manager.Trouble(f.Now); text != "" {
		list = append(list, Notice{Kind: ManagerDown, Message: text, Command: LookAtManager})
	}
	if len(f.Policies) == 0 && len(f.Views()) > 0 {
		list = append(list, Notice{Kind: NoPolicy, Nodes: s.Ungoverned, Command: "kubectl reboot status", Message: "the cluster has no RebootPolicy, so no node is rebooted"})
		return list
	}
	var waiting []string
	for _, name := range s.Ungoverned {
		_, n := f.Node(name)
		abandoned := f.Governor.Abandons(n)
		if abandoned == nil {
			waiting = append(waiting, name)
			continue
		}
		list = append(list, Notice{Kind: NoPolicy, Nodes: []string{name}, Command: "kubectl reboot explain " + name, Message: name + ": " + abandoned.Message})
	}
	if len(waiting) > 0 {
		list = append(list, Notice{
			Kind: NoPolicy, Nodes: waiting, Command: "kubectl reboot explain " + waiting[0],
			Message: fmt.Sprintf("no policy selects %s, but a reboot is needed there", message.Some(waiting)),
		})
	}
	return list
}

// Refusal returns the policy's condition about refused writes of granted reboots, or nil.
func Refusal(policy *v1alpha1.RebootPolicy) *metav1.Condition {
	c := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionProgressing)
	if c == nil || c.Reason != string(v1alpha1.ReasonNodeWriteRefused) {
		return nil
	}
	return c
}
