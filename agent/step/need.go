package step

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// maxWhyBytes bounds how much of an administrator's reason is passed on.
const maxWhyBytes = 128

// need is Node condition RebootRequired: an engine's need wins over an administrator's request, that one over the uptime, and the
// message has all of them, and which engines reported. That no engine can be asked is Unknown, which is never a need.
func need(o Observation) corev1.NodeCondition {
	report := *o.Engine
	c := corev1.NodeCondition{
		Type: v1alpha1.NodeRebootRequired, Status: corev1.ConditionFalse, Reason: string(report.Reason),
	}
	switch {
	case report.State == engine.Needed:
		c.Status = corev1.ConditionTrue
	case o.asked():
		c.Status, c.Reason = corev1.ConditionTrue, string(v1alpha1.ReasonRequested)
	case o.upTooLong():
		c.Status, c.Reason = corev1.ConditionTrue, string(v1alpha1.ReasonMaxUptime)
	case report.State == engine.Unknown:
		c.Status = corev1.ConditionUnknown
	}
	conflict := ""
	if c.Status != corev1.ConditionTrue && o.Coordinators.Found {
		conflict = o.Coordinators.Message // RebootPermitted shows it for a node that asks.
	}
	c.Message = sentences(request(o), labelled(o), report.Message, conflict, uptime(o), origin(reportedEngines(o)))
	return c
}

// sentences joins those that are not empty.
func sentences(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), " ")
}

// request describes an administrator's request; empty where there is none.
func request(o Observation) string {
	if !o.Requested {
		return ""
	}
	return fmt.Sprintf("An administrator asks for a reboot: %q.", message.Shorten(maxWhyBytes, o.RequestedWhy))
}

// labelled describes a request by label; empty where there is none. A label's value is one word, so nothing in it can be taken for
// the origin that follows.
func labelled(o Observation) string {
	if !o.Labelled {
		return ""
	}
	return fmt.Sprintf("Label %s asks for a reboot: %q.", v1alpha1.LabelRebootRequested, o.LabelValue)
}

// uptime is the sentence about a node that has been up for too long; empty where it has not. It stays the same as time goes on.
func uptime(o Observation) string {
	if !o.upTooLong() {
		return ""
	}
	return fmt.Sprintf("The node has been up for longer than %s, its maximum under spec.requests.maxUptime of its policy.", o.MaxUptime)
}

// fulfilled reports whether the reboot that just ended was the answer to the request of this sentence. It was if the condition
// that led to it reported the request: one that was made since is another one. MaintenanceInProgress is still True only until the
// first report after the boot, so a request is removed once.
func fulfilled(o Observation, request string) bool {
	reported := strings.Contains(o.Condition(v1alpha1.NodeRebootRequired).Message, request)
	return request != "" && reported && o.rebooted() && o.Is(corev1.NodeMaintenanceInProgress)
}
