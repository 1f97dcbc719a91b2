// Package halt decides whether a policy stops after failures.
package halt

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// State is the wanted condition Halted of a policy.
type State struct {
	Halted  bool
	Reason  v1alpha1.Reason
	Message string
}

// ResumeHint returns the end of condition Halted's message: the command that resumes the policy.
func ResumeHint(policy string) string {
	return fmt.Sprintf(`; fix them, then run: kubectl annotate rebootpolicy %s %s="what was fixed"`, policy, v1alpha1.AnnotationResume)
}

// Of counts the nodes that failed since the last success or since an administrator resumed the
// policy. A halted policy stays halted until it is resumed.
func Of(a record.Attempts, governed []*record.Node, reboots []underway.Reboot) State {
	if value, resumed := a.Policy.Annotations[v1alpha1.AnnotationResume]; resumed {
		return State{Reason: v1alpha1.ReasonResumed, Message: "resumed: " + message.Shorten(record.MaxMessage, cmp.Or(value, "no reason given"))}
	}
	current := meta.FindStatusCondition(a.Policy.Status.Conditions, v1alpha1.ConditionHalted)
	if current != nil && current.Status == metav1.ConditionTrue {
		return State{Halted: true, Reason: v1alpha1.ReasonTooManyFailures, Message: strings.TrimSuffix(current.Message, ResumeHint(a.Policy.Name))}
	}
	from := timing.Latest(record.LastReboot(a.Policy, a.Now), record.Resumed(a.Policy, a.Now)) // LastReboot ignores the future, which would hide every failure until then
	failed, deleted := failedSince(a, from, governed, reboots)
	limit := fmt.Sprintf("maxFailures is %d", a.Policy.Spec.MaxFailuresOrDefault())
	if len(failed) < int(a.Policy.Spec.MaxFailuresOrDefault()) {
		if deleted < v1alpha1.MaxHistory {
			return quiet(current)
		}
		limit = fmt.Sprintf("no policy goes on after %d deleted Nodes", v1alpha1.MaxHistory)
	}
	return State{Halted: true, Reason: v1alpha1.ReasonTooManyFailures, Message: fmt.Sprintf(
		"%s failed since the last success (%s): %s", message.Count(len(failed), "node", "nodes"), limit, message.Some(failed))}
}

// quiet returns the state without a halt. It keeps reason Resumed and its message, because failures
// count from that time.
func quiet(current *metav1.Condition) State {
	if current != nil && current.Reason == string(v1alpha1.ReasonResumed) {
		return State{Reason: v1alpha1.ReasonResumed, Message: current.Message}
	}
	return State{Reason: v1alpha1.ReasonHealthy}
}

// LostIn returns the nodes of a ring whose Node objects were deleted during their reboots. They count
// until a node of the ring comes back or an administrator resumes the policy.
func LostIn(a record.Attempts, ring string, reboots []underway.Reboot) []string {
	if _, resumed := a.Policy.Annotations[v1alpha1.AnnotationResume]; resumed {
		return nil
	}
	var names []string
	resumedAt := record.Resumed(a.Policy, a.Now)
	for past := range record.History(a.Policy, a.Now) {
		switch {
		case past.Ring != ring:
		case past.Result == v1alpha1.RebootSucceeded:
			names = names[:0]
		case past.Reason == v1alpha1.ReasonNodeGoneInReboot && past.EndedAt.After(resumedAt):
			names = append(names, past.Node)
		}
	}
	for _, t := range reboots {
		if t.Entry.Ring == ring && t.Reason == v1alpha1.ReasonNodeGoneInReboot {
			names = append(names, t.Entry.Node)
		}
	}
	return names
}

// failedSince lists the nodes that failed after a time: the attempt was given up, missed its
// deadline, or ended with a deleted Node. Each node counts once. deleted is the number of deleted Nodes
// in the history, which cannot hold more than MaxHistory of them.
func failedSince(a record.Attempts, from time.Time, governed []*record.Node, reboots []underway.Reboot) (failed []string, deleted int) {
	reasons := map[string]v1alpha1.Reason{}
	for _, n := range governed {
		switch {
		case !n.NeedsReboot():
		case n.HookRefused() && n.Grant.At.After(from):
			reasons[n.Name] = n.Grant.Reason
		case n.FailedTry(): // a closed budget is not the node's failure
		case n.HasFailed():
			if earliest, _ := a.Ended(n); earliest.After(from) {
				reasons[n.Name] = n.Progress.Reason
			}
		}
	}
	for _, t := range reboots {
		if t.FailedAt.After(from) || t.Reason == v1alpha1.ReasonNodeGoneInReboot {
			reasons[t.Entry.Node] = t.Reason
		}
	}
	for past := range record.History(a.Policy, a.Now) {
		if past.Reason == v1alpha1.ReasonNodeGoneInReboot && past.EndedAt.After(from) {
			reasons[past.Node] = past.Reason
			deleted++
		}
	}
	failed = make([]string, 0, len(reasons))
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		failed = append(failed, name+" ("+string(reasons[name])+")")
	}
	return failed, deleted
}
