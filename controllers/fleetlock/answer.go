package fleetlock

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// maxMessageBytes bounds the sentence that a client logs.
const maxMessageBytes = 1024

// Answer is the response to a client.
type Answer struct {
	// OK is a yes. Reason and Message explain a no.
	OK      bool
	Reason  v1alpha1.Reason
	Message string
	// Waits reports whether a no may become a yes while the client waits.
	Waits bool
}

// Error is the body of a no.
type Error struct {
	// Kind is the reason in snake case: Zincati makes it the label of a metric.
	Kind string `json:"kind"`
	// Value is a sentence, which Zincati logs.
	Value string `json:"value"`
}

// Error returns the body of a no.
func (a Answer) Error() Error { return Error{Kind: kind(a.Reason), Value: a.Message} }

// kind returns a reason in snake case. One that a status would not accept is not passed on.
func kind(reason v1alpha1.Reason) string {
	if !reason.IsValid() {
		return "unknown"
	}
	var text strings.Builder
	for i, r := range string(reason) {
		if unicode.IsUpper(r) && i > 0 {
			text.WriteByte('_')
		}
		text.WriteRune(unicode.ToLower(r))
	}
	return text.String()
}

// refuse returns a no that waiting does not change.
func refuse(reason v1alpha1.Reason, text string) Answer {
	return Answer{Reason: reason, Message: message.Shorten(maxMessageBytes, text)}
}

// wait returns a no that may become a yes.
func wait(reason v1alpha1.Reason, text string) Answer {
	a := refuse(reason, text)
	a.Waits = true
	return a
}

// Invalid refuses a request that does not follow the protocol.
func Invalid(why string) Answer {
	return refuse(v1alpha1.ReasonInvalidRequest, "The request does not follow the FleetLock protocol: "+why+".")
}

// Foreign refuses a request that does not come from an address of its Node.
func Foreign(node *corev1.Node, address string) Answer {
	return refuse(v1alpha1.ReasonForeignAddress, fmt.Sprintf(
		"The request comes from %s, which is not an address of Node %s (status.addresses). Leave out --fleetlock-check-source if the cluster's network changes source addresses.", address, node.Name))
}

// Busy refuses a request because too many wait already.
func Busy(why string) Answer {
	return refuse(v1alpha1.ReasonTooManyRequests, why+" Ask again in a few minutes.")
}

// Unread is the no of a server that could not read what a yes depends on.
func Unread(node *corev1.Node) Answer {
	return wait(v1alpha1.ReasonNotConfirmed, fmt.Sprintf(
		"The API server does not confirm that Node %s may be rebooted. See the manager's log.", node.Name))
}

// PreReboot answers whether the client may reboot its host now. It may if and only if the agent has
// passed the point of no return under an active grant for the boot that the Node reports. The
// ledger is that of the policy that the grant names.
func PreReboot(node *corev1.Node, ledger []v1alpha1.LedgerEntry) Answer {
	record := protocol.RecordOf(node)
	if Passed(node) {
		if slices.ContainsFunc(ledger, func(e v1alpha1.LedgerEntry) bool {
			return e.Node == node.Name && e.NodeUID == node.UID && e.Seq == record.Grant.Seq
		}) {
			return Answer{OK: true}
		}
		return wait(v1alpha1.ReasonGrantWithdrawn, fmt.Sprintf("The ledger of policy %s does not have grant %d of Node %s.",
			record.Grant.LedgerName(), record.Grant.Seq, node.Name))
	}
	required := v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootRequired)
	permitted := v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootPermitted)
	switch {
	case required.Type == "":
		return wait(v1alpha1.ReasonAgentsMissing, fmt.Sprintf("No agent of reboot-operator has reported from Node %s yet.", node.Name))
	case required.Status == corev1.ConditionFalse:
		return wait(v1alpha1.Reason(required.Reason), required.Message+" A request alone counts only with --fleetlock-requests.")
	case required.Status != corev1.ConditionTrue:
		return wait(v1alpha1.Reason(required.Reason), required.Message)
	case permitted.Type == "":
		return wait(v1alpha1.Reason(required.Reason), required.Message+" No policy has decided about the reboot yet.")
	}
	answer := wait(v1alpha1.Reason(permitted.Reason), permitted.Message)
	// After a failed drain the client is told at once, and asks again while the node backs off.
	answer.Waits = answer.Reason != v1alpha1.ReasonBackingOff
	return answer
}

// Passed reports whether the agent has passed the point of no return under an active grant for the
// boot that the Node reports.
func Passed(node *corev1.Node) bool {
	record, boot := protocol.RecordOf(node), node.Status.NodeInfo.BootID
	grant := record.Grant
	return grant != nil && grant.State == protocol.GrantActive && boot != "" && grant.BootID == boot &&
		record.In(grant.Seq, protocol.PhaseRebooting) && record.Progress.BootID == boot
}

// SteadyState answers whether the client may look for further updates. It may, unless its node is
// in the middle of a granted reboot. A reboot that is overdue, or whose after-hooks run, does not
// hold the client, because that may take until a person acts. The same goes for a reboot whose policy
// is gone.
func SteadyState(node *corev1.Node) Answer {
	record := protocol.RecordOf(node)
	rebooting := record.Progress != nil && record.Progress.Phase == protocol.PhaseRebooting && record.Outstanding()
	hooks := record.Hooks != nil && record.Hooks.Stage == v1alpha1.HooksAfter && len(record.Hooks.Hooks) > 0 && record.Shows(record.Hooks.Seq)
	if !rebooting || hooks || overdue(node) {
		return Answer{OK: true}
	}
	return wait(v1alpha1.ReasonRebooting, fmt.Sprintf(
		"Node %s is not back in service after its reboot: it must be Ready on a new boot ID for the settle time of its policy.", node.Name))
}

// overdue reports whether the node has not come back from its reboot in time, or no policy ends the
// reboot.
func overdue(node *corev1.Node) bool {
	permitted := v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootPermitted)
	late := []string{
		string(v1alpha1.ReasonRebootTimedOut), string(v1alpha1.ReasonAgentSilent), string(v1alpha1.ReasonStartupTaint),
		string(v1alpha1.ReasonNoPolicy), string(v1alpha1.ReasonPolicyConflict),
	}
	return slices.Contains(late, permitted.Reason) ||
		v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootFailed).Status == corev1.ConditionTrue
}
