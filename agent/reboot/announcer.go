package reboot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// announcer emits the events of the agent's Node. Except for notice and warn, its methods are
// called after the write, or the reply of logind, that justifies their events.
type announcer struct {
	recorder lifecycle.Recorder
	// announced holds the last value of each event that is emitted only once per value.
	announced map[string]string
}

// newAnnouncer returns an announcer with a recorder that acts as the node.
func newAnnouncer(recorder events.EventRecorder) *announcer {
	return &announcer{recorder: lifecycle.Recorder{EventRecorder: recorder}, announced: map[string]string{}}
}

// notice reports what prevents progress: an unreadable record once for each of its values, and pods
// that hold up a drain once for each set of pods.
func (a *announcer) notice(node *corev1.Node, o step.Observation, inTheWay []drain.Pod) {
	for key, err := range map[string]error{
		v1alpha1.AnnotationGrant: o.Record.GrantErr, v1alpha1.AnnotationProgress: o.Record.ProgressErr,
	} {
		value := node.Annotations[key]
		if err != nil && a.once(key, value) {
			a.warn(node, v1alpha1.ReasonRecordUnreadable, "Read", "this record permits no reboot: %v", err)
		}
	}
	blocked := evictionsBlocked(inTheWay)
	if len(blocked) > 0 && a.once(v1alpha1.EventEvictionBlocked, uids(blocked)) {
		first := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: blocked[0].Namespace, Name: blocked[0].Name, UID: blocked[0].UID,
		}}
		a.recorder.Eventf(lifecycle.NodeReference(node.Name, node.UID), first, corev1.EventTypeWarning, v1alpha1.EventEvictionBlocked, "Evict",
			"the drain waits for %s", pods(blocked))
	}
}

// once reports whether a value differs from the last one.
func (a *announcer) once(key, value string) bool {
	last, announced := a.announced[key]
	a.announced[key] = value
	return !announced || last != value
}

// evictionsBlocked returns the blocked pods without those that a rule waits for, and without those
// that were refused only seconds ago.
func evictionsBlocked(blocked []drain.Pod) []drain.Pod {
	return slices.DeleteFunc(slices.Clone(blocked), func(p drain.Pod) bool {
		return p.Recent || p.Reason == string(v1alpha1.DrainWaitCompleted)
	})
}

func uids(pods []drain.Pod) string {
	all := make([]string, 0, len(pods))
	for _, p := range pods {
		all = append(all, string(p.UID))
	}
	return strings.Join(all, " ")
}

// reported emits the events for a change of the need for a reboot, after the write.
func (a *announcer) reported(ctx context.Context, node *corev1.Node, o step.Observation) {
	a.waits(node, o)
	a.unexpected(node, o)
	before := o.Condition(v1alpha1.NodeRebootRequired)
	after := v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootRequired)
	if after.Status == before.Status && after.Reason == before.Reason && after.Message == before.Message {
		return
	}
	ctrl.LoggerFrom(ctx).Info("Reported whether a reboot is needed", "status", after.Status,
		"reason", after.Reason, "message", after.Message)
	if after.Status == corev1.ConditionTrue {
		a.event(node, v1alpha1.EventRebootRequired, "Report", "%s: %s", after.Reason, step.WithoutOrigin(after.Message))
	}
}

// unexpected reports a reboot of the host that nobody granted, after the write that records it.
func (a *announcer) unexpected(node *corev1.Node, o step.Observation) {
	current := step.UnexpectedReboot(o)
	if current == nil || o.Before.BootID == o.BootID {
		return
	}
	if after, err := protocol.ParseEngines(node.Annotations); err != nil || after == nil || after.Unexpected == nil {
		return
	}
	a.warn(node, v1alpha1.EventUnexpectedReboot, "Report", "the host was rebooted at %s, and nobody granted that; os-version was %s and is now %s",
		timing.Instant(current.At.Time), cmp.Or(current.FromVersion, "unknown"), cmp.Or(current.ToVersion, "unknown"))
}

func (a *announcer) begun(node *corev1.Node, o step.Observation, progress protocol.Progress) {
	delete(a.announced, v1alpha1.EventEvictionBlocked)
	policy := o.Record.Grant.Policy
	if progress.Cordoned {
		a.event(node, v1alpha1.EventCordoned, "Cordon", "cordoned for the reboot granted by policy %s (number %d)", policy, progress.Seq)
	}
	spec, after := o.Settings().Drain, ""
	if lead := spec.LeadTimeOrDefault(); lead > 0 {
		after = fmt.Sprintf(", after drain.leadTime of %s", lead)
	}
	a.event(node, v1alpha1.EventDraining, "Drain", "draining for the reboot granted by policy %s (number %d), for at most %s%s",
		policy, progress.Seq, spec.TimeoutOrDefault(), after)
}

// waits reports the volumes that a drained node waits for, once for each wait. The condition shows
// whether they were reported.
func (a *announcer) waits(node *corev1.Node, o step.Observation) {
	before, after := o.Condition(corev1.NodeDrained), v1alpha1.NodeCondition(node.Status.Conditions, corev1.NodeDrained)
	if after.Reason == v1alpha1.EventVolumesInUse && before.Reason != after.Reason {
		a.event(node, v1alpha1.EventVolumesInUse, "Drain", "%s", after.Message)
	}
}

func (a *announcer) committed(node *corev1.Node, o step.Observation, next step.CommitReboot) {
	progress := next.Progress
	if len(next.Volumes) > 0 {
		a.warn(node, v1alpha1.EventVolumesInUse, "Drain", "the reboot continues after %s, although the kubelet still uses %s",
			o.Settings().Drain.VolumeDetachTimeoutOrDefault(), step.VolumeNames(next.Volumes))
	}
	if progress.Reason == v1alpha1.ReasonDrainTimedOut {
		a.warn(node, v1alpha1.ReasonDrainTimedOut, "Drain", "%s The node is rebooted anyway (drain.onTimeout: Reboot).", progress.Message)
		return
	}
	note := fmt.Sprintf("drained (number %d)", progress.Seq)
	if o.Drain.Staying != "" {
		note += "; " + o.Drain.Staying
	}
	a.event(node, v1alpha1.EventDrained, "Drain", "%s", note)
}

// aborted announces the end of an attempt and whether the node was uncordoned. node is the Node
// after the write.
func (a *announcer) aborted(node *corev1.Node, next step.AbortDrain, uncordoned bool) {
	p := next.Progress
	if p.Reason == v1alpha1.ReasonDrainTimedOut {
		a.warn(node, v1alpha1.ReasonDrainTimedOut, "Drain", "%s", p.Message)
	}
	cordon := "still cordoned, because somebody else cordoned it"
	switch {
	case uncordoned:
		cordon = "uncordoned"
	case !node.Spec.Unschedulable:
		cordon = "already uncordoned"
	}
	a.warn(node, v1alpha1.EventDrainAborted, "Abort", "%s, %s (number %d): %s", p.Reason, cordon, p.Seq, p.Message)
}

func (a *announcer) accepted(node *corev1.Node, o step.Observation) {
	a.event(node, v1alpha1.ReasonRebooting, "Reboot", "logind accepted the reboot (number %d)", o.Record.Progress.Seq)
}

func (a *announcer) refused(node *corev1.Node, message string) {
	a.recorder.Eventf(lifecycle.NodeReference(node.Name, node.UID), nil, corev1.EventTypeWarning, string(v1alpha1.ReasonRebootRefused), "Reboot", "%s", message)
}

// unwritten reports that the API server refuses a write of a step, once for each kind of step until
// a write succeeds. The event can be written because it is a separate object.
func (a *announcer) unwritten(node *corev1.Node, next step.Step, err error) {
	if err == nil {
		delete(a.announced, string(v1alpha1.ReasonNodeWriteRefused))
	}
	if !nodepatch.IsRefusal(err) {
		return
	}
	problem := "what the agent reports on the Node is not up to date"
	switch next := next.(type) {
	case step.StartDrain:
		problem = "the drain does not begin"
	case step.CommitReboot, step.RecordCall, step.RecordBoot:
		problem = "the reboot does not continue, and the node stays cordoned"
	case step.AbortDrain:
		problem = fmt.Sprintf("the attempt has ended (%s: %s) and the node stays cordoned", next.Progress.Reason, next.Progress.Message)
	}
	if !a.once(string(v1alpha1.ReasonNodeWriteRefused), problem) {
		return
	}
	why := err.Error()
	if !nodepatch.IsUndone(err) {
		why = "the API server refuses what the agent writes: " + why
	}
	a.recorder.Eventf(lifecycle.NodeReference(node.Name, node.UID), nil, corev1.EventTypeWarning, string(v1alpha1.ReasonNodeWriteRefused), "Write",
		"%s: %s", problem, why)
}

// refusal returns the message about a failed call of logind. Without a reply it is unknown whether
// logind obeys.
func refusal(err error) string {
	return engine.Shorten(fmt.Sprintf("Logind has not confirmed the reboot: %v.", err))
}

func (a *announcer) event(node *corev1.Node, reason v1alpha1.Reason, action, note string, args ...any) {
	a.recorder.Eventf(node, nil, corev1.EventTypeNormal, string(reason), action, note, args...)
}

func (a *announcer) warn(node *corev1.Node, reason v1alpha1.Reason, action, note string, args ...any) {
	a.recorder.Eventf(node, nil, corev1.EventTypeWarning, string(reason), action, note, args...)
}

// blocked emits the events for the reasons that an administrator has to resolve.
func (a *announcer) blocked(node *corev1.Node, reasons []protocol.Blocker) {
	for _, b := range reasons {
		a.warn(node, b.Reason, "Report", "%s", b.Message)
	}
}
