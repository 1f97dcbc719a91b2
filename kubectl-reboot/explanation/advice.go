package explanation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/attention"
	"github.com/reboot-operator/reboot-operator/controllers/plan/run"
	"github.com/reboot-operator/reboot-operator/controllers/plan/slots"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
)

// Advice says what to do. Command does it or shows more, and is empty if no command can.
type Advice struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
}

// allPods lists the pods of a node in all namespaces, including its agent.
const allPods = "kubectl get pods -A --field-selector spec.nodeName=NODE"

// waits is the advice for each reason to wait. NODE and POLICY are placeholders for names.
var waits = map[v1alpha1.Reason]Advice{
	v1alpha1.ReasonNoPolicy:             {"create a policy that selects the node, or fix a nodeSelector", "kubectl get rebootpolicies"},
	v1alpha1.ReasonPolicyConflict:       {"let one policy select it, and all control-plane nodes; or raise the priority of the more specific one", "kubectl edit rbp POLICY"},
	v1alpha1.ReasonNodePaused:           {"let the node be rebooted again", "kubectl reboot resume node/NODE"},
	v1alpha1.ReasonInvalid:              {"fix the field that the message names", "kubectl edit rbp POLICY"},
	v1alpha1.ReasonSharedPolicyNotFound: {"create the policy that the message names, or correct spec.concurrency.shared", "kubectl edit rbp POLICY"},
	v1alpha1.ReasonPaused:               {"wait, or end the pause", "kubectl reboot resume rbp/POLICY --pause"},
	v1alpha1.ReasonHalted:               {"fix the nodes that failed, then resume the policy", `kubectl reboot resume rbp/POLICY --halt --reason="what was fixed"`},
	v1alpha1.ReasonBlackout:             {"wait; to see the next windows, run", "kubectl reboot windows POLICY"},
	v1alpha1.ReasonWindowClosed:         {"wait; to see the next windows, run", "kubectl reboot windows POLICY"},
	v1alpha1.ReasonWindowTooShort:       {"wait, or make the window longer; to see the next windows, run", "kubectl reboot windows POLICY"},
	v1alpha1.ReasonNodeUnavailable:      {"fix the node, because its reboot could not be confirmed", "kubectl describe node NODE"},
	v1alpha1.ReasonUpdateNotApplied:     {"repair the update, or remove what requests the reboot; a new version is tried by itself; to try this one again, run", "kubectl reboot request NODE --reason=why"},
	v1alpha1.ReasonJustBooted:           {"wait until the time in the message", "kubectl describe node NODE"},
	v1alpha1.ReasonInhibited:            {"find the program that holds the inhibitor; to list inhibitors, run on the host", "systemd-inhibit --list"},
	v1alpha1.ReasonRebootRefused:        {"end what the message names, on the host; to list inhibitors there, run", "systemd-inhibit --list"},
	v1alpha1.ReasonCoordinatorConflict:  {"run the command in the message on the host; to list all nodes with another program, run", "kubectl reboot doctor"},
	v1alpha1.ReasonRecordUnreadable:     {"check whether the agent runs, because it repairs its record", allPods},
	v1alpha1.ReasonBackingOff:           {"fix what made the last attempt fail; to retry before the time above, run", "kubectl reboot retry NODE"},
	v1alpha1.ReasonRingWaits:            {"wait, or fix the node that the message names; pausing that node lets later rings go on", "kubectl reboot status POLICY"},
	v1alpha1.ReasonUndrainablePod:       {"fix what the message names, wait for the next try if it has one, or add a rule in spec.drain.rules: Delete for budgets, Skip for any pod", allPods},
	v1alpha1.ReasonBlockingPod:          {"wait until the pods that the message names have completed, or change spec.gates", allPods},
	v1alpha1.ReasonAlertFiring:          {"check the alert, or fix the gate's query; to see the state of the gates, run", "kubectl describe rbp POLICY"},
	v1alpha1.ReasonObjectNotReady:       {"check the object in the message, or fix the gate's expression; to see the state of the gates, run", "kubectl describe rbp POLICY"},
	v1alpha1.ReasonGateUnreachable:      {"fix what the message names; to see the state of the gates, run", "kubectl describe rbp POLICY"},
	v1alpha1.ReasonControlPlaneGuard:    {"wait, or fix the other control-plane node", "kubectl get nodes"},
	v1alpha1.ReasonDomainBusy:           {"wait; to see the reboots in progress, run", "kubectl reboot status POLICY"},
	v1alpha1.ReasonBudgetExhausted:      {"wait, or fix nodes that are not Ready or cordoned; to see which nodes use the slots, run", "kubectl reboot status POLICY -o wide"},
	v1alpha1.ReasonSpacing:              {"wait, or shorten spec.concurrency.spacing of the policy", "kubectl get rbp POLICY -o yaml"},
	v1alpha1.ReasonRunHookWaits:         {"check the hook in the message, or answer for it; to see the run, run", "kubectl get rbp POLICY -o jsonpath={.status.run}"},
	v1alpha1.ReasonDryRun:               {"let the policy grant reboots, because in mode DryRun it never does", `kubectl patch rbp POLICY --type=merge -p '{"spec":{"mode":"Enforce"}}'`},
}

// NoLimit is the advice for a node whose turn never comes, because maxUnavailable is 0.
func NoLimit(policy string) Advice {
	return Advice{"raise spec.concurrency.maxUnavailable, here or in the policy whose limit this one shares", "kubectl edit rbp " + policy}
}

// holdsUp is the advice about a node that uses up the limit without a reboot while others wait.
func holdsUp(u slots.Unavailable) Advice {
	if u.Cordoned {
		return Advice{u.Node + " is cordoned and uses up the limit while others wait; if nobody needs the cordon any more, run", "kubectl uncordon " + u.Node}
	}
	return Advice{"repair " + u.Node + ", which " + u.Why + " and uses up the limit while others wait", "kubectl describe node " + u.Node}
}

// grantedAdvice is the advice for reasons that may hold up a granted reboot. Other reasons need
// none.
var grantedAdvice = map[v1alpha1.Reason]Advice{
	v1alpha1.ReasonRebootTimedOut:   {"check the machine; once you are sure that it is off for good, free its slot with", "kubectl delete node NODE"},
	v1alpha1.ReasonAgentSilent:      {"check whether the agent runs", allPods},
	v1alpha1.ReasonStartupTaint:     {"find what should remove the taint; if it is meant to stay, put the node back in service with", "kubectl uncordon NODE"},
	v1alpha1.ReasonDrainTimedOut:    {"check whether the agent runs", allPods},
	v1alpha1.ReasonRecordUnreadable: {"check whether the agent runs, because it repairs its record", allPods},
	v1alpha1.ReasonWaitingForHook:   {"wait, or check the hook's pod on the node", allPods},
	v1alpha1.ReasonHookFailed:       {"fix what the hook checks; the reboot continues once it answers \"true\"", allPods},
	v1alpha1.ReasonNodeWriteRefused: {"let the manager write the Node; to list what may refuse its writes, run", attention.LookAtAdmission},
	v1alpha1.ReasonHookTimedOut:     {"check the hook's pod on the node; the reboot continues once it answers \"true\"", allPods},
}

// AdviceFor returns what to do about a node that waits for a reason.
func AdviceFor(reason v1alpha1.Reason, node, policy string) Advice {
	a := waits[reason]
	if a.Text == "" {
		a.Text = "see docs/reasons.md for what to do about " + string(reason)
	}
	return a.about(node, policy)
}

// maxPriority is the highest priority that the API server accepts.
const maxPriority = 1_000_000

// ties reports whether another policy with the same priority selects the node. Control-plane nodes
// of two policies are in conflict without a tie.
func (p *Policy) ties() bool {
	return p != nil && slices.ContainsFunc(p.Others, func(other Policy) bool { return other.Priority == p.Priority })
}

// rivals returns the policies that select the node with the same priority, or nil if no other one
// does.
func (p *Policy) rivals() []string {
	names := []string{p.Name}
	for _, other := range p.Others {
		if other.Priority == p.Priority {
			names = append(names, other.Name)
		}
	}
	return names
}

// advise returns the advice for an explained node. free is a priority that no policy has reached.
// specific returns the policy that should win a conflict, because it selects the fewest nodes.
func advise(e *Explanation, free int64, specific func(policies ...string) string) Advice {
	policy := ""
	if e.Policy != nil {
		policy = e.Policy.Name
	}
	switch e.Verdict {
	case Waiting:
		return adviseWaiting(e, policy, free, specific)
	case Due:
		return Advice{"nothing; if this does not change, check whether the manager runs", status.LookAtManager}
	case NoNeed:
		return Advice{"nothing; to request a reboot without an update, run", "kubectl reboot request NODE --reason=why"}.about(e.Node, policy)
	case InProgress:
		if e.Reboot.Answer != "" {
			return Advice{"let the hook answer, or check the node and answer by hand", e.Reboot.Answer}
		}
		if a, ok := grantedAdvice[e.Reason]; ok {
			return a.about(e.Node, policy)
		}
		if e.Reboot.Phase == underway.StateDraining {
			return Advice{"nothing; to see what the drain waits for, run", "kubectl describe node NODE"}.about(e.Node, policy)
		}
		return Advice{Text: "nothing"}
	case Unknown, Unanswered:
		if e.Reason == v1alpha1.ReasonNodeUnavailable {
			return Advice{"repair the node", "kubectl describe node " + e.Node}
		}
	}
	return Advice{"check whether the agent runs, and read its log", allPods}.about(e.Node, policy)
}

// adviseWaiting returns the advice for a node that waits.
func adviseWaiting(e *Explanation, policy string, free int64, specific func(policies ...string) string) Advice {
	if e.Reason == v1alpha1.ReasonPolicyConflict && e.Policy.ties() && free <= maxPriority {
		command := fmt.Sprintf(`kubectl patch rbp %s --type=merge -p '{"spec":{"priority":%d}}'`, specific(e.Policy.rivals()...), free)
		return Advice{waits[e.Reason].Text, command}
	}
	if _, command := run.SplitMessage(e.Message); e.Reason == v1alpha1.ReasonRunHookWaits && command != "" {
		return Advice{"let the hook answer, or do its work and answer by hand", command}
	}
	return AdviceFor(e.Reason, e.Node, policy)
}

// about replaces the placeholders with names.
func (a Advice) about(node, policy string) Advice {
	a.Command = strings.NewReplacer("NODE", node, "POLICY", policy).Replace(a.Command)
	return a
}
