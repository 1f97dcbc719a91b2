package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// LookAtManager is the command that shows whether the manager runs, whatever its namespace.
const LookAtManager = "kubectl get pods -A -l app.kubernetes.io/name=reboot-operator"

// LookAtAgents is the command that shows whether the agents run.
const LookAtAgents = "kubectl get daemonsets,pods -A -l app.kubernetes.io/name=reboot-operator -o wide"

// LookAtAdmission is the command that lists most of what may refuse a write.
const LookAtAdmission = "kubectl get validatingadmissionpolicies,validatingwebhookconfigurations"

// Kind is what a notice is about.
type Kind string

// The kinds of notices.
const (
	Invalid      Kind = "Invalid"
	Halted       Kind = "Halted"
	Urgent       Kind = "Urgent"
	Paused       Kind = "Paused"
	Conflict     Kind = "Conflict"
	AgentsNeeded Kind = "AgentsNeeded"
	WriteRefused Kind = "WriteRefused"
	LimitHeld    Kind = "LimitHeld"
	Overdue      Kind = "Overdue"
	DeadlineNear Kind = "DeadlineNear"
	RunHooks     Kind = "RunHooks"
	Deleting     Kind = "Deleting"
	ManagerLags  Kind = "ManagerLags"
)

// Notice is something that needs attention, and a command that helps.
type Notice struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	Command string `json:"command,omitempty"`
}

// notices are what keeps a policy from going on by itself, most important first.
func notices(f fleet.Fleet, policy *v1alpha1.RebootPolicy, p plan.Plan, s *Policy) []Notice {
	var list []Notice
	now := f.Now
	note := func(kind Kind, when bool, message, command string) {
		if when {
			list = append(list, Notice{Kind: kind, Message: message, Command: command})
		}
	}
	name := policy.Name
	note(Invalid, p.Invalid != "", fmt.Sprintf("policy %s cannot be acted on: %s", name, p.Invalid), "kubectl edit rbp "+name)
	note(Invalid, p.Unshared != "", fmt.Sprintf("policy %s cannot be acted on: it %s", name, p.Unshared), "kubectl edit rbp "+name)
	note(Halted, p.Halt.Halted, fmt.Sprintf("policy %s has halted: %s", name, p.Halt.Message), fmt.Sprintf(`kubectl reboot resume rbp/%s --halt --reason="what was fixed"`, name))
	if u := policy.Spec.Urgent; u != nil {
		note(Urgent, now.Before(u.Until.Time), fmt.Sprintf("policy %s is urgent until %s: %s", name, timing.Instant(u.Until.Time), u.Reason),
			"kubectl patch rbp "+name+` --type merge -p '{"spec":{"urgent":null}}'`)
	}
	note(Paused, policy.Spec.PausedAt(now), pauseMessage(policy), "kubectl reboot resume rbp/"+name+" --pause")
	if len(p.Conflicts) > 0 {
		names := slices.Sorted(maps.Keys(p.Conflicts))
		needs := slices.IndexFunc(names, func(name string) bool { _, n := f.Node(name); return n.NeedsReboot() })
		first := names[max(needs, 0)]
		note(Conflict, true, fmt.Sprintf("policies %s select %s with the same priority: no reboot is granted there",
			strings.Join(p.Conflicts[first], ", "), message.Count(len(p.Conflicts), "node", "nodes")), "kubectl reboot explain "+first)
	}
	for _, other := range slices.Sorted(maps.Keys(p.Withheld)) {
		nodes := p.Withheld[other]
		note(Conflict, true, fmt.Sprintf("policy %s is invalid and keeps %s of policy %s, which has a lower priority: no reboot is granted there",
			other, message.Count(len(nodes), "node", "nodes"), name), "kubectl edit rbp "+other)
	}
	if c := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionAgentsReady); c != nil {
		note(AgentsNeeded, c.Status != metav1.ConditionTrue, fmt.Sprintf("policy %s: %s", name, c.Message), LookAtAgents)
	}
	if c := Refusal(policy); c != nil {
		note(WriteRefused, true, fmt.Sprintf("policy %s: %s", name, c.Message), LookAtAdmission)
	}
	if stall := p.Stall; stall != nil {
		note(LimitHeld, true, fmt.Sprintf("policy %s: %s since %s: %s", name, message.Count(int(stall.Waiting), "node waits", "nodes wait"),
			timing.Instant(stall.Since), stall.Message), "kubectl describe node "+stall.Nodes[0])
	}
	for _, t := range s.InProgress {
		note(Overdue, t.Overdue, t.Node+": "+t.Message, "kubectl reboot explain "+t.Node)
	}
	if d := p.Deadlines; d != nil {
		note(DeadlineNear, d.Reason != v1alpha1.ReasonInTime, fmt.Sprintf("policy %s: %s", name, d.Message), "kubectl reboot forecast "+name)
	}
	note(RunHooks, p.RunWaits != "", fmt.Sprintf("policy %s: %s", name, p.RunWaits), "kubectl get rbp "+name+" -o jsonpath={.status.run.hooks}")
	note(Deleting, policy.DeletionTimestamp != nil, fmt.Sprintf("policy %s is being deleted: it stays until its grants and the hooks of its run are over", name), "kubectl describe rbp "+name)
	note(ManagerLags, policy.Status.ObservedGeneration < policy.Generation, "the manager has not taken in the last change of policy "+name+"; if this stays, it may not run", LookAtManager)
	note(ManagerLags, len(s.Due) > 0, fmt.Sprintf("nothing blocks %s: the manager grants at once; if this stays, it may not run", terminal.Some(s.Due)), LookAtManager)
	return list
}

// Attention is the notices of all policies. One that several of them have is there once.
func (s Status) Attention() []Notice {
	var all []Notice
	for _, p := range s.Policies {
		for _, n := range p.Notices {
			if !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	return all
}

// Refusal is the condition of a policy that reports refused writes about granted reboots. Nil: none is refused.
func Refusal(policy *v1alpha1.RebootPolicy) *metav1.Condition {
	c := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionProgressing)
	if c == nil || c.Reason != string(v1alpha1.ReasonNodeWriteRefused) {
		return nil
	}
	return c
}

func pauseMessage(policy *v1alpha1.RebootPolicy) string {
	message := "policy " + policy.Name + " is paused"
	if pause := policy.Spec.Pause; pause != nil && pause.Reason != "" {
		message += ": " + pause.Reason
	}
	return message
}
