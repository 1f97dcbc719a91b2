package reboot

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// maxWhyBytes bounds how much of an administrator's words is told on.
const maxWhyBytes = 128

// need is Node condition RebootRequired: an engine's need wins over an administrator's request, and the message tells
// both. That nobody can be asked is Unknown, which is never a need.
func need(o Observation) corev1.NodeCondition {
	heard := *o.Engine
	c := corev1.NodeCondition{
		Type: v1alpha1.NodeRebootRequired, Status: corev1.ConditionFalse,
		Reason: string(heard.Reason), Message: heard.Message,
	}
	switch {
	case heard.State == engine.Needed:
		c.Status = corev1.ConditionTrue
		c.Message = join(heard.Message, latchMark(o), request(o))
	case o.Requested:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, string(v1alpha1.ReasonRequested), request(o)
	case heard.State == engine.Unknown:
		c.Status = corev1.ConditionUnknown
	}
	return c
}

// request tells an administrator's request; empty where there is none.
func request(o Observation) string {
	if !o.Requested {
		return ""
	}
	why := strings.ToValidUTF8(o.RequestedWhy[:min(len(o.RequestedWhy), maxWhyBytes)], "")
	return fmt.Sprintf("An administrator asks for a reboot: %q.", why)
}

// fulfilled tells whether the reboot that just ended was the answer to the request. It was if the condition that led to
// it told the request: one that was made since is another one. MaintenanceInProgress is still True only until the first
// report after the boot, so a request is removed once.
func fulfilled(o Observation) bool {
	told := strings.Contains(o.condition(v1alpha1.NodeRebootRequired).Message, request(o))
	return o.Requested && told && o.rebooted() && o.is(corev1.NodeMaintenanceInProgress)
}

// latchMark says in which boot a need was heard that no engine confirms, so that it outlives the process and not the boot.
func latchMark(o Observation) string {
	if !o.Engine.Latched {
		return ""
	}
	return mark(o.BootID)
}

func mark(bootID string) string { return fmt.Sprintf("Heard in boot %s.", bootID) }

// Latched tells whether a Node's condition RebootRequired holds a need of this boot that no engine confirms. An engine
// that starts is told of it: nobody else remembers.
func Latched(conditions []corev1.NodeCondition, bootID string) bool {
	c := Observation{Conditions: conditions}.condition(v1alpha1.NodeRebootRequired)
	return c.Status == corev1.ConditionTrue && strings.Contains(c.Message, mark(bootID))
}

// join makes one text of sentences, leaving out empty ones.
func join(sentences ...string) string {
	var told []string
	for _, s := range sentences {
		if s != "" {
			told = append(told, s)
		}
	}
	return strings.Join(told, " ")
}
