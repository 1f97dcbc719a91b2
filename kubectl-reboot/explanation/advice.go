package explanation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/attention"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/run"
	"github.com/reboot-operator/reboot-operator/controllers/plan/slots"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
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

// question holds what the advice for an explained node depends on.
type question struct {
	*Explanation

	fleet  fleet.Fleet
	policy *v1alpha1.RebootPolicy // nil if none is responsible
	plan   plan.Plan              // of that policy
	node   *record.Node
	// then will block the node once its window opens. It is empty if nothing is known.
	then v1alpha1.Reason
	// failed means that the last attempt failed, so that the node can be retried.
	failed bool
}

// rules have the advice, most important first. A rule that does not apply returns none.
var rules = []func(q question) Advice{
	foreseen, holdingOthersUp, withoutManager, onWindows, withoutPolicy, withoutLimit, tryingOnly, afterFailure,
	lastGrantRemains, closedForGood, limitHeld, inConflict, inRunHook, ofVerdict,
}

// advice returns the advice of the first rule that applies.
func (q question) advice() Advice {
	for _, rule := range rules {
		if a := rule(q); a.Text != "" {
			return a
		}
	}
	return Advice{Text: "nothing"}
}

// waitsFor reports whether the policy makes the node wait for one of the reasons. A node that does not
// wait may show any reason, because its agent has reported it.
func (q question) waitsFor(reasons ...v1alpha1.Reason) bool {
	return q.Verdict == Waiting && slices.Contains(reasons, q.Reason)
}

func (q question) waitsForHours() bool {
	return q.waitsFor(v1alpha1.ReasonWindowClosed, v1alpha1.ReasonBlackout)
}

// foreseen replaces the advice to wait for a window if a person has to act all the same.
func foreseen(q question) Advice {
	if q.policy == nil || q.Verdict != Waiting || q.fleet.Manager.Down(q.At) || !plan.NeedsPerson(q.then) {
		return Advice{}
	}
	return AdviceFor(q.then, q.Node, q.policy.Name)
}

func holdingOthersUp(q question) Advice {
	i := slices.IndexFunc(q.plan.Unavailable, func(u slots.Unavailable) bool { return u.Node == q.Node })
	if q.Verdict != NoNeed || i < 0 || q.plan.OldestPending.IsZero() {
		return Advice{}
	}
	return holdsUp(q.plan.Unavailable[i])
}

func withoutManager(q question) Advice {
	if !q.fleet.Manager.Down(q.At) || q.Verdict == NoNeed || q.node.Windows {
		return Advice{}
	}
	return Advice{"start the manager: nothing happens without one", status.LookAtManager}
}

func onWindows(q question) Advice {
	if !q.node.Windows {
		return Advice{}
	}
	return Advice{Text: "nothing"}
}

// withoutPolicy does not propose to request a reboot that nobody would grant.
func withoutPolicy(q question) Advice {
	if q.policy != nil || q.Verdict != NoNeed {
		return Advice{}
	}
	return Advice{"nothing now; the node will not be rebooted until a policy selects it", "kubectl get rebootpolicies"}
}

func withoutLimit(q question) Advice {
	if q.plan.Limit > 0 || !q.waitsForHours() && !q.waitsFor(v1alpha1.ReasonBudgetExhausted) {
		return Advice{}
	}
	return NoLimit(q.policy.Name)
}

// tryingOnly does not propose to wait if no reboot follows.
func tryingOnly(q question) Advice {
	if q.policy == nil || q.Verdict != Waiting || q.policy.Spec.ModeOrDefault() != v1alpha1.ModeDryRun || plan.NeedsPerson(q.Reason) {
		return Advice{}
	}
	switch q.Reason {
	case v1alpha1.ReasonNodePaused, v1alpha1.ReasonInvalid, v1alpha1.ReasonSharedPolicyNotFound, v1alpha1.ReasonHalted, v1alpha1.ReasonPolicyConflict, "":
		return Advice{}
	}
	return AdviceFor(v1alpha1.ReasonDryRun, q.Node, q.policy.Name)
}

func afterFailure(q question) Advice {
	switch {
	case q.waitsFor(v1alpha1.ReasonBackingOff) && !q.failed:
		return Advice{"wait until the time above; to reboot it sooner, run", "kubectl reboot request " + q.Node + " --reason=why"}
	case q.waitsFor(v1alpha1.ReasonUndrainablePod) && q.failed:
		return Advice{"fix what the message names, or wait for the next try; to try now, run", "kubectl reboot retry " + q.Node}
	}
	return Advice{}
}

func lastGrantRemains(q question) Advice {
	if !q.waitsFor("") {
		return Advice{}
	}
	return Advice{"nothing; if this does not change, check whether the manager runs", status.LookAtManager}
}

func closedForGood(q question) Advice {
	if !q.waitsForHours() || !q.Until.IsZero() {
		return Advice{}
	}
	return Advice{"change the windows or blackouts of the policy, because no window ever opens; to see them, run", "kubectl reboot windows " + q.policy.Name}
}

func limitHeld(q question) Advice {
	if !q.waitsFor(v1alpha1.ReasonBudgetExhausted) || len(q.plan.Unavailable) < int(q.plan.Limit) {
		return Advice{}
	}
	return holdsUp(q.plan.Unavailable[0])
}

// inConflict lets the policy win that selects the fewest nodes, with a priority that no policy has
// reached.
func inConflict(q question) Advice {
	free := freePriority(q.fleet.Policies)
	if !q.waitsFor(v1alpha1.ReasonPolicyConflict) || !q.Policy.ties() || free > maxPriority {
		return Advice{}
	}
	command := fmt.Sprintf(`kubectl patch rbp %s --type=merge -p '{"spec":{"priority":%d}}'`, q.fleet.MostSpecific(q.Policy.rivals()...), free)
	return Advice{waits[q.Reason].Text, command}
}

func inRunHook(q question) Advice {
	_, command := run.SplitMessage(q.Message)
	if !q.waitsFor(v1alpha1.ReasonRunHookWaits) || command == "" {
		return Advice{}
	}
	return Advice{"let the hook answer, or do its work and answer by hand", command}
}

// ofVerdict is the advice if nothing special applies.
func ofVerdict(q question) Advice {
	policy := ""
	if q.policy != nil {
		policy = q.policy.Name
	}
	switch q.Verdict {
	case Waiting:
		return AdviceFor(q.Reason, q.Node, policy)
	case Due:
		return Advice{"nothing; if this does not change, check whether the manager runs", status.LookAtManager}
	case NoNeed:
		return Advice{"nothing; to request a reboot without an update, run", "kubectl reboot request NODE --reason=why"}.about(q.Node, policy)
	case InProgress:
		return inProgress(q).about(q.Node, policy)
	case Unknown, Unanswered:
		if q.Reason == v1alpha1.ReasonNodeUnavailable {
			return Advice{"repair the node", "kubectl describe node " + q.Node}
		}
	}
	return Advice{"check whether the agent runs, and read its log", allPods}.about(q.Node, policy)
}

func inProgress(q question) Advice {
	if q.Reboot.Answer != "" {
		return Advice{"let the hook answer, or check the node and answer by hand", q.Reboot.Answer}
	}
	if a, ok := grantedAdvice[q.Reason]; ok {
		return a
	}
	if q.Reboot.Phase == underway.StateDraining {
		return Advice{"nothing; to see what the drain waits for, run", "kubectl describe node NODE"}
	}
	return Advice{Text: "nothing"}
}

// about replaces the placeholders with names.
func (a Advice) about(node, policy string) Advice {
	a.Command = strings.NewReplacer("NODE", node, "POLICY", policy).Replace(a.Command)
	return a
}
