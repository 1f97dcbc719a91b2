// Package explanation says why one node is not rebooting, or how far its reboot is.
package explanation

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
)

// Verdict is the short answer.
type Verdict string

const (
	// NoNeed means that the node needs no reboot.
	NoNeed Verdict = "NoNeed"
	// Unknown means that the need for a reboot is unknown.
	Unknown Verdict = "Unknown"
	// Unanswered means that a reboot is requested and the agent has not reacted.
	Unanswered Verdict = "Unanswered"
	// Waiting means that a reboot is needed and a check blocks it.
	Waiting Verdict = "Waiting"
	// Due means that a reboot is needed and nothing blocks it, so the manager grants it in its next
	// pass.
	Due Verdict = "Due"
	// InProgress means that the reboot is granted and not over.
	InProgress Verdict = "InProgress"
)

// Explanation explains the state of one node's reboot.
type Explanation struct {
	Node    string    `json:"node"`
	At      time.Time `json:"at"`
	Verdict Verdict   `json:"verdict"`
	// Request is an open request for a reboot, or nil.
	Request *Request `json:"request,omitempty"`
	// Reason and Message are those of condition RebootPermitted.
	Reason  v1alpha1.Reason `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	// Until is the time when the reason ends by itself, or zero if it needs an action.
	Until time.Time `json:"until,omitzero"`
	// Need is the node's condition RebootRequired, as the agent reports it.
	Need Condition `json:"need"`
	// Deadline is the end of spec.deadline for this need, or zero if the policy has none.
	Deadline time.Time `json:"deadline,omitzero"`
	Policy   *Policy   `json:"policy,omitempty"`
	// Pods names the pods that would hold up a drain, if Message does not.
	Pods string `json:"pods,omitempty"`
	// Slots says who uses up maxUnavailable, if the node waits for that.
	Slots string `json:"slots,omitempty"`
	// Checks lists all checks in order. It is empty if the node needs no reboot or has its grant.
	Checks   []Check        `json:"checks,omitempty"`
	Reboot   *fleet.Granted `json:"reboot,omitempty"`
	Timeline []Moment       `json:"timeline,omitempty"`
	Advice   Advice         `json:"advice"`
	// Manager is the decision that the manager wrote to the node, if that differs from what its planner says
	// now.
	Manager *Condition `json:"manager,omitempty"`
}

// Request is a request by annotation or label.
type Request struct {
	// Reason is the text of the request.
	Reason string `json:"reason,omitempty"`
	// At is the time of the request, or zero if the API server does not know it.
	At time.Time `json:"at,omitzero"`
}

// Policy is the policy responsible for the node: the one that granted its reboot, or governs it, or
// is the first of those in conflict.
type Policy struct {
	Name     string `json:"name"`
	Priority int32  `json:"priority"`
	// Others lists the other policies that select the node, without their own Others.
	Others []Policy `json:"others,omitempty"`
}

// Check is the result of one check.
type Check struct {
	Name   v1alpha1.Reason `json:"name"`
	Result plan.Result     `json:"result"`
	// Message says why the check passed or failed.
	Message string `json:"message,omitempty"`
}

// Condition is a condition of the node.
type Condition struct {
	// Status is True, False or Unknown, or empty if the condition is missing.
	Status  corev1.ConditionStatus `json:"status,omitempty"`
	Reason  string                 `json:"reason,omitempty"`
	Message string                 `json:"message,omitempty"`
	// Since is the last transition of condition RebootRequired, and zero for other conditions.
	Since time.Time `json:"since,omitzero"`
}

// Of explains a node of the fleet.
func Of(f fleet.Fleet, name string) (Explanation, error) {
	object, node := f.Node(name)
	if node == nil {
		return Explanation{}, fmt.Errorf("node %q not found", name)
	}
	policy := f.Policy(f.Governor.Responsible(node))
	answer := plan.Explain(f.Snapshot(policy), name)
	e := Explanation{
		Node: name, At: f.Now, Reason: answer.Decision.Reason, Message: answer.Decision.Message, Until: answer.Until,
		Need: needOf(object), Policy: policyOf(policy, f.Governor.Selecting(node)), Checks: checksOf(answer.Checks),
	}
	if policy != nil {
		e.Deadline = record.DueAt(policy, node)
	}
	e.Pods = podsInTheWay(policy, node, answer, e.Message)
	if answer.Reboot != nil {
		reboot := f.RebootOf(*answer.Reboot)
		e.Reboot, e.Reason, e.Message, e.Until = &reboot, reboot.Reason, reboot.Message, reboot.Until
		if c := status.Refusal(policy); c != nil && answer.Reboot.Action.WritesNode() {
			e.Reason, e.Message = v1alpha1.ReasonNodeWriteRefused, c.Message
		}
	}
	e.Verdict = verdict(answer, node)
	if e.Verdict == NoNeed || e.Verdict == Unknown {
		e.Reason, e.Message = v1alpha1.Reason(e.Need.Reason), e.Need.Message
	}
	e.doubt(node, agentMissing(f.Policy(f.Governor.Govern(node).Policy), name))
	e.Request = requestOf(object)
	if e.Request != nil && (e.Verdict == NoNeed || e.Verdict == Unknown) {
		e.Verdict, e.Reason, e.Message = Unanswered, "", ""
	}
	e.Timeline, e.Manager = timeline(&e, policy, node, answer.Reboot), differs(answer, node)
	q := question{Explanation: &e, fleet: f, policy: policy, node: node, then: answer.Decision.Then, failed: e.cutRetryHints()}
	if policy != nil {
		q.plan = f.Plan(policy)
	}
	e.Advice = q.advice()
	e.complete(q)
	return e, nil
}

// doubt makes the verdict unknown if nobody can tell by now that the node needs no reboot: it is not
// Ready, or its agent is missing, as the condition of its policy says.
func (e *Explanation) doubt(node *record.Node, missing *metav1.Condition) {
	switch {
	case e.Verdict != NoNeed:
	case !node.Ready:
		e.Verdict, e.Reason, e.Message = Unknown, v1alpha1.ReasonNodeUnavailable, NotReady
	case missing != nil:
		e.Verdict, e.Reason, e.Message = Unknown, v1alpha1.Reason(missing.Reason), missing.Message
	}
}

// podsInTheWay names the pods that keep a waiting node from being drained, unless the message does.
func podsInTheWay(policy *v1alpha1.RebootPolicy, node *record.Node, answer plan.Explanation, message string) string {
	if policy == nil || !node.NeedsReboot() || answer.Reboot != nil {
		return ""
	}
	if pods := gates.PodsOf(policy).InTheWay(node); !strings.Contains(message, pods) {
		return pods
	}
	return ""
}

// agentMissing returns the AgentsReady condition of the governing policy if the node may lack a
// working agent, or else nil. The status names only the first such nodes, so a node that sorts
// after them may be one too.
func agentMissing(policy *v1alpha1.RebootPolicy, node string) *metav1.Condition {
	if policy == nil || policy.Status.Nodes.Agents == nil {
		return nil
	}
	agents := policy.Status.Nodes.Agents
	unnamed := int(agents.Missing) > len(agents.Nodes) && node > slices.Max(append(slices.Clip(agents.Nodes), ""))
	if !unnamed && !fleet.AgentMissing(agents, node) {
		return nil
	}
	return meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionAgentsReady)
}

// LastGrantRemains explains why the planner has no decision about a node that needs a reboot.
const LastGrantRemains = "the manager has not released its last grant yet"

// NotReady explains why the need for a reboot is unknown although the agent has reported it.
const NotReady = "the node is not Ready, so its agent cannot report whether it needs a reboot"

// complete adds what the planner does not say: about nodes that run Windows or whose grant ends, and
// who uses up the limit.
func (e *Explanation) complete(q question) {
	switch {
	case q.node.Windows:
		e.Message = "the node runs Windows, on which agents cannot run, so the operator ignores it"
	case q.waitsFor(""):
		e.Message = LastGrantRemains
	case q.waitsFor(v1alpha1.ReasonBudgetExhausted), holdingOthersUp(q).Text != "":
		e.Slots = q.plan.Holders
	}
}

// cutRetryHints removes the manager's command to retry, because the advice has a shorter one. It
// reports whether the message had one.
func (e *Explanation) cutRetryHints() (cut bool) {
	if e.Reason != v1alpha1.ReasonBackingOff && e.Reason != v1alpha1.ReasonUndrainablePod {
		return false
	}
	for i := range e.Checks {
		e.Checks[i].Message, _ = record.WithoutRetryHint(e.Checks[i].Message)
	}
	e.Message, cut = record.WithoutRetryHint(e.Message)
	return cut
}

// freePriority returns a priority above those of all policies. An existing priority would cause the
// next tie.
func freePriority(policies []v1alpha1.RebootPolicy) int64 {
	highest := int64(math.MinInt32)
	for i := range policies {
		highest = max(highest, int64(policies[i].Spec.Priority))
	}
	return highest + 1
}

func verdict(answer plan.Explanation, n *record.Node) Verdict {
	switch {
	case answer.Reboot != nil:
		return InProgress
	case answer.Due:
		return Due
	case n.NeedsReboot(), answer.Decision.Status == corev1.ConditionFalse:
		return Waiting
	case n.Required == corev1.ConditionFalse:
		return NoNeed
	}
	return Unknown
}

// requestOf returns the request on a node, or nil. Its time comes from managedFields.
func requestOf(node *corev1.Node) *Request {
	why, requested := v1alpha1.RebootRequested(node)
	if !requested {
		return nil
	}
	request := &Request{Reason: why}
	field := []byte(`"f:` + v1alpha1.AnnotationRebootRequested + `"`)
	for _, entry := range node.ManagedFields {
		if entry.Time != nil && entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), field) {
			request.At = entry.Time.Time
		}
	}
	return request
}

func needOf(node *corev1.Node) Condition {
	c := v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootRequired)
	return Condition{Status: c.Status, Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
}

func policyOf(policy *v1alpha1.RebootPolicy, selecting []governor.Selection) *Policy {
	if policy == nil {
		return nil
	}
	p := &Policy{Name: policy.Name, Priority: policy.Spec.Priority}
	for _, s := range selecting {
		if s.Policy != policy.Name {
			p.Others = append(p.Others, Policy{Name: s.Policy, Priority: s.Priority})
		}
	}
	return p
}

func checksOf(outcomes []plan.Outcome) []Check {
	checks := make([]Check, 0, len(outcomes))
	for _, o := range outcomes {
		checks = append(checks, Check{Name: o.Check, Result: o.Result, Message: o.Message})
	}
	return checks
}

// differs returns what the manager wrote if that is not what its planner says now, unless an update
// is due anyway.
func differs(answer plan.Explanation, n *record.Node) *Condition {
	shown, want := Condition{}, answer.Decision
	if c := n.Permitted; c != nil {
		shown = Condition{Status: c.Status, Reason: c.Reason, Message: c.Message}
	}
	switch {
	case answer.Reboot != nil && want.Status == "":
		return nil
	case answer.Due && shown.Status == "":
		return nil
	case shown.Status == want.Status && shown.Reason == string(want.Reason):
		return nil
	}
	return &shown
}
