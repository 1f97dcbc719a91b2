package controllers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/halt"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// statusOf returns the status of a policy after a plan. It is pure and depends only on its
// arguments.
func statusOf(policy *v1alpha1.RebootPolicy, p plan.Plan, w window.State, now time.Time) v1alpha1.RebootPolicyStatus {
	status := *policy.Status.DeepCopy()
	status.ObservedGeneration = policy.Generation
	status.Mode = policy.Spec.ModeOrDefault()
	status.Nodes, status.Blocked, status.Versions = p.Counts, p.Blocked, p.Versions
	if status.Nodes.Agents = policy.Status.Nodes.Agents; p.Agents != nil {
		status.Nodes.Agents = &p.Agents.AgentsStatus
	}
	status.Limit, status.Seq = p.Limit, p.Ledger.Seq
	p.Ledger.Enter(policy.Name, &status)
	run, over := p.Run(policy.Status, now)
	if over {
		run = nil
	}
	status.Run = run
	status.Window, status.Gates = windowStatus(p, w), p.Gates
	status.LastRebootAt, status.History = lastReboot(policy, p, now), p.History(policy, now)
	if !busy(status) {
		status.EstimatedCompletionAt = nil
	}
	if p.Deadlines == nil {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionDeadlineNear)
	}
	for _, c := range conditions(policy, p, w) {
		c.ObservedGeneration = policy.Generation
		c.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&status.Conditions, c)
	}
	slices.SortStableFunc(status.Conditions, func(a, b metav1.Condition) int {
		return cmp.Compare(slices.Index(order, a.Type), slices.Index(order, b.Type))
	})
	if _, resumed := policy.Annotations[v1alpha1.AnnotationResume]; resumed {
		// Failures count from here on, even if the policy had not halted.
		meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionHalted).LastTransitionTime = metav1.NewTime(now)
	}
	return status
}

// urgent reports whether two statuses differ in something that cannot wait. Counts, versions and
// agents can wait, and so can the names of nodes that are rebooting or close to their deadline.
func urgent(before, after v1alpha1.RebootPolicyStatus) bool {
	after.Nodes, after.Blocked, after.Versions = before.Nodes, before.Blocked, before.Versions
	before.Grants, after.Grants = granted(before.Grants), granted(after.Grants)
	before.Conditions, after.Conditions = prompt(before.Conditions), prompt(after.Conditions)
	return !equality.Semantic.DeepEqual(before, after)
}

// granted returns the ledger without the progress of the reboots.
func granted(grants []v1alpha1.LedgerEntry) []v1alpha1.LedgerEntry {
	grants = slices.Clone(grants)
	for i := range grants {
		grants[i].RebootingAt = nil
	}
	return grants
}

// prompt returns the conditions without what may wait.
func prompt(conditions []metav1.Condition) []metav1.Condition {
	conditions = slices.Clone(conditions)
	meta.RemoveStatusCondition(&conditions, v1alpha1.ConditionAgentsReady)
	if near := meta.FindStatusCondition(conditions, v1alpha1.ConditionDeadlineNear); near != nil {
		near.Message = ""
	}
	return conditions
}

func windowStatus(p plan.Plan, w window.State) *v1alpha1.WindowStatus {
	s := &v1alpha1.WindowStatus{State: p.Window, Open: w.Open, Name: w.Name}
	s.ClosesAt, s.OpensAt = timeOrNil(w.ClosesAt), timeOrNil(w.OpensAt)
	return s
}

func lastReboot(policy *v1alpha1.RebootPolicy, p plan.Plan, now time.Time) *metav1.Time {
	last, believed := policy.Status.LastRebootAt, record.LastReboot(policy, now)
	for _, t := range p.Released() {
		if t.Node == nil || !t.Node.Finished(t.Entry.Seq) {
			continue
		}
		if instant := timing.Earliest(t.Node.Grant.At.Time, now); instant.After(believed) {
			last, believed = new(metav1.NewTime(instant)), instant
		}
	}
	return last
}

// order is the order of the conditions, which kubectl describe keeps: those that may need a person come
// first. It does not depend on their status, so that a diff shows only what changed.
var order = []string{
	v1alpha1.ConditionHalted, v1alpha1.ConditionAccepted, v1alpha1.ConditionAgentsReady, v1alpha1.ConditionDeadlineNear,
	v1alpha1.ConditionProgressing, v1alpha1.ConditionWindowOpen,
}

func conditions(policy *v1alpha1.RebootPolicy, p plan.Plan, w window.State) []metav1.Condition {
	list := []metav1.Condition{accepted(&policy.Spec, p), windowOpen(&policy.Spec, w), progressing(p), halted(policy, p)}
	if a := p.Agents; a != nil {
		list = append(list, metav1.Condition{
			Type: v1alpha1.ConditionAgentsReady, Status: metav1.ConditionStatus(a.Status), Reason: string(a.Reason), Message: a.Message,
		})
	}
	if d := p.Deadlines; d != nil {
		list = append(list, condition(v1alpha1.ConditionDeadlineNear, d.Reason != v1alpha1.ReasonInTime, d.Reason, d.Message))
	}
	return list
}

// accepted says whether the spec is in force, and why no reboot follows from it although it is.
func accepted(spec *v1alpha1.RebootPolicySpec, p plan.Plan) metav1.Condition {
	switch {
	case p.Invalid != nil:
		return condition(v1alpha1.ConditionAccepted, false, p.Invalid.Reason, p.Invalid.Message)
	case len(p.Conflicts) > 0:
		return condition(v1alpha1.ConditionAccepted, false, v1alpha1.ReasonPolicyConflict, conflicts(p.Conflicts))
	}
	if len(p.Withheld) > 0 {
		return condition(v1alpha1.ConditionAccepted, false, v1alpha1.ReasonPolicyConflict, withheld(p.Withheld))
	}
	text := "the whole spec is in force"
	switch {
	case spec.ModeOrDefault() == v1alpha1.ModeDryRun:
		text += "; mode DryRun grants no reboot"
	case p.Counts.Selected == 0:
		text += "; the policy governs no node"
	case p.Limit == 0:
		text += "; maxUnavailable of 0 permits no reboot"
	}
	return condition(v1alpha1.ConditionAccepted, true, v1alpha1.ReasonAccepted, text)
}

// withheld names an invalid policy that selects the same nodes as this one, and some of these
// nodes.
func withheld(nodes map[string][]string) string {
	policy := slices.Min(slices.Collect(maps.Keys(nodes)))
	names := slices.Sorted(slices.Values(nodes[policy]))
	return fmt.Sprintf("%s not rebooted: policy %s, which has a higher spec.priority, also selects %s and is Invalid; correct or delete policy %s, or lower its spec.priority",
		message.Count(len(names), "node is", "nodes are"), policy, message.Names(names, maxWithheld), policy)
}

// maxWithheld is the number of nodes that a condition names.
const maxWithheld = 5

// conflicts joins the sentences of all conflicts.
func conflicts(all []governor.Conflict) string {
	texts := make([]string, len(all))
	for i, c := range all {
		texts[i] = c.Message()
	}
	return strings.Join(texts, ". ")
}

func windowOpen(spec *v1alpha1.RebootPolicySpec, w window.State) metav1.Condition {
	switch {
	case w.Urgent:
		return condition(v1alpha1.ConditionWindowOpen, true, v1alpha1.ReasonUrgent, urgentMessage(spec))
	case w.Blackout:
		return condition(v1alpha1.ConditionWindowOpen, false, v1alpha1.ReasonBlackout, "blackout "+w.Name+" is in force; "+opening(w))
	case !w.Open:
		return condition(v1alpha1.ConditionWindowOpen, false, v1alpha1.ReasonWindowClosed, "no window is open; "+opening(w))
	case w.Always:
		return condition(v1alpha1.ConditionWindowOpen, true, v1alpha1.ReasonAlwaysOpen, "the policy has no windows: always open")
	}
	return condition(v1alpha1.ConditionWindowOpen, true, v1alpha1.ReasonWindowOpen, "window "+w.Name+" is open")
}

// opening says when the next reboot may start.
func opening(w window.State) string {
	if w.OpensAt.IsZero() {
		return "no window opens within 400 days: change the windows or blackouts"
	}
	return "the next reboot may start " + timing.Instant(w.OpensAt)
}

// urgentMessage says until when the policy is urgent, what it ignores, and why.
func urgentMessage(spec *v1alpha1.RebootPolicySpec) string {
	all := spec.UrgentOrDefault().All
	ignored := make([]string, len(all.Ignore))
	for i, limit := range all.Ignore {
		ignored[i] = string(limit)
	}
	return fmt.Sprintf("urgent until %s, ignoring %s: %s", timing.Instant(all.Until.Time), strings.Join(ignored, ", "), all.Reason)
}

// progressing names the nodes that use up maxUnavailable, and the hooks of the run that are
// pending.
func progressing(p plan.Plan) metav1.Condition {
	others, limit := after("; unavailable: ", p.Holders)+after("; ", p.RunWaits), p.Limit
	if p.Batch != nil {
		others, limit = "; "+p.Batch.Message+others, min(limit, max(p.Batch.Limit, int32(len(p.Ledger.Own()))))
	}
	if n := len(p.Ledger.Own()); n > 0 {
		reason, message := v1alpha1.ReasonRebooting, fmt.Sprintf("%d of at most %d reboots in progress%s%s", n, limit, after("; ", p.Ledger.Together()), others)
		if nodes, refused := p.Refused(); nodes > 0 {
			reason, message = v1alpha1.ReasonNodeWriteRefused, refused+"; "+message
		}
		return condition(v1alpha1.ConditionProgressing, true, reason, message)
	}
	if p.Stall != nil {
		return condition(v1alpha1.ConditionProgressing, false, v1alpha1.ReasonLimitHeld, stalled(p.Stall)+others)
	}
	return condition(v1alpha1.ConditionProgressing, false, v1alpha1.ReasonIdle, "no reboot is in progress"+others)
}

// stalled says how many nodes wait for others that are not rebooted, and what to do.
func stalled(stall *block.Stall) string {
	return message.Count(int(stall.Waiting), "node waits", "nodes wait") + " since " + timing.Instant(stall.Since) + ": " + stall.Message
}

// after adds a beginning to a text that is not empty.
func after(beginning, text string) string {
	if text == "" {
		return ""
	}
	return beginning + text
}

// halted names the nodes that failed, and the command that resumes the policy.
func halted(policy *v1alpha1.RebootPolicy, p plan.Plan) metav1.Condition {
	text := p.Halt.Message
	switch {
	case p.Halt.Halted:
		text += halt.ResumeHint(policy.Name)
	case text == "":
		text = fmt.Sprintf("the policy halts once %s failed since the last success (maxFailures)",
			message.Count(int(policy.Spec.MaxFailuresOrDefault()), "node has", "nodes have"))
	}
	return condition(v1alpha1.ConditionHalted, p.Halt.Halted, p.Halt.Reason, text)
}

// maxConditionBytes is far below the API server's limit for a message. A longer message would
// prevent the whole status from being written.
const maxConditionBytes = 4096

func condition(kind string, met bool, reason v1alpha1.Reason, text string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: string(reason), Message: message.Shorten(maxConditionBytes, text)}
	if met {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// timeOrNil returns nil for the zero time, and for a time that RFC 3339 cannot represent, because
// the API server would reject the whole status.
func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() || t.UTC().Year() > v1alpha1.LastYear {
		return nil
	}
	return &metav1.Time{Time: t}
}
