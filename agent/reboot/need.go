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
		c.Message = strings.TrimSpace(heard.Message + " " + origin(heard, o.BootID) + " " + request(o))
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

// origin says who spoke of the need, and in which boot. A process that starts in that boot reads it again, because an
// engine may not repeat what it said, or may have forgotten the version; in another boot the need has fallen.
func origin(heard engine.Report, bootID string) string {
	from := "Heard from " + heard.Engine
	if heard.Latched {
		from += " by broadcast"
	}
	from += " in boot " + bootID
	if words := strings.Fields(heard.Version); len(words) == 1 && words[0] == heard.Version {
		from += ": version " + heard.Version
	}
	return from + "."
}

// before is what an engine had reported in this boot, as the origin in its Node's condition still tells. Zero: nothing, or
// no need.
func before(conditions []corev1.NodeCondition, name, bootID string) engine.Report {
	c := Observation{Conditions: conditions}.condition(v1alpha1.NodeRebootRequired)
	_, from, _ := strings.Cut(c.Message, "Heard from ")
	from, _, _ = strings.Cut(from+" ", ". ")
	from, version, _ := strings.Cut(from, ": version ")
	from, in, _ := strings.Cut(from, " in boot ")
	speaker, latched := strings.CutSuffix(from, " by broadcast")
	needed := c.Status == corev1.ConditionTrue && c.Reason != string(v1alpha1.ReasonRequested)
	if !needed || speaker != name || in != bootID {
		return engine.Report{}
	}
	return engine.Report{
		Engine: name, State: engine.Needed, Reason: v1alpha1.Reason(c.Reason), Latched: latched, Version: version,
	}
}
