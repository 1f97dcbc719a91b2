package step

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// maxWhyBytes bounds how much of an administrator's reason is passed on.
const maxWhyBytes = 128

// need is Node condition RebootRequired. An engine's need wins over an administrator's request, and that one over the uptime. The
// message has all of them, and which engines reported. Where nothing asks and an engine cannot be asked, it is Unknown, which is never a
// need.
func need(o Observation) corev1.NodeCondition {
	report := engine.Merge(o.Engines)
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
	return fmt.Sprintf("The node has been up for longer than %s, its maximum under spec.maxUptime of its policy.", o.MaxUptime)
}

// fulfilled reports whether the reboot that just ended was the answer to the request of this sentence. It was if the condition
// that led to it reported the request: one that was made since is another one. The agent's MaintenanceInProgress is still True only
// until the first report after the boot, so a request is removed once. Another program may have written over it.
func fulfilled(o Observation, request string) bool {
	reported := strings.Contains(o.Condition(v1alpha1.NodeRebootRequired).Message, request)
	isFirst := o.holds(corev1.NodeMaintenanceInProgress) ||
		o.is(corev1.NodeMaintenanceInProgress) && o.Before != nil && o.Before.BootID != o.BootID
	return request != "" && reported && o.rebooted() && isFirst
}

// What the engines have reported is on the Node twice. People read it in the last sentence of condition RebootRequired, the agent's
// next process in annotation AnnotationEngines.
//
//	Reported by update-engine (asks by broadcast until Tue 2026-11-24 22:00:00 UTC for version 4593.1.0),
//	sentinel (asks again after the reboot), rpm-ostree.
const originIntro = "Reported by "

// reportedEngines is what the engines have reported by now.
func reportedEngines(o Observation) []protocol.EngineRecord {
	var reported []protocol.EngineRecord
	for _, r := range o.Engines {
		if r.State == engine.Absent {
			continue
		}
		record := protocol.EngineRecord{Name: r.Engine, Rebooted: wasRebootedFor(o, r.Engine)}
		if r.State == engine.Needed {
			record.Asks, record.Again, record.Version, record.Running = true, asksAgain(o, r.Engine), r.Version, r.Running
			record.Client = r.Client
		}
		if !r.Until.IsZero() {
			record.Until = new(metav1.NewTime(r.Until))
		}
		reported = append(reported, record)
	}
	return reported
}

// engineRecord is what the next process of the agent reads of it; nil where that is nothing. An engine that has not answered in this
// boot may not be on the host. One that was named must be Absent once it is not.
func engineRecord(o Observation) *protocol.Engines {
	reported := slices.DeleteFunc(reportedEngines(o), func(r protocol.EngineRecord) bool {
		unknown := func(e engine.Report) bool { return e.Engine == r.Name && e.State == engine.Unknown }
		return slices.ContainsFunc(o.Engines, unknown) && Before(o.Before, r.Name, o.BootID).State == ""
	})
	if len(reported) == 0 {
		return nil
	}
	return &protocol.Engines{BootID: o.BootID, Reported: reported}
}

// origin is the sentence about them; empty where none has reported.
func origin(engines []protocol.EngineRecord) string {
	if len(engines) == 0 {
		return ""
	}
	from := make([]string, len(engines))
	for i, r := range engines {
		from[i] = r.Name + asks(r)
	}
	return originIntro + strings.Join(from, ", ") + "."
}

// asks is what follows the name of an engine in an origin. A version that could be mistaken for more is left out.
func asks(r protocol.EngineRecord) string {
	if !r.Asks {
		return ""
	}
	text := "asks"
	if r.Again {
		text += " again after the reboot"
	}
	if r.Until != nil {
		text += " by broadcast until " + timing.Instant(r.Until.Time)
	}
	if r.Version != "" && !strings.ContainsAny(r.Version, " ,()\t\n") {
		text += " for version " + r.Version
	}
	return " (" + text + ")"
}

// returnsWithin is the time after the boot of a granted reboot within which a need that comes back
// counts as the same one. A timer of the host may check minutes after each boot, or every few
// hours.
const returnsWithin = 4 * time.Hour

// asksAgain reports whether an engine that asks now asks for what the last granted reboot was to end. Either it has asked without a
// break since before the reboot, or it began to ask within hours of the boot. An engine that did not ask before the reboot has a new
// need. No time of day is compared, because a boot may set the host's clock.
func asksAgain(o Observation, name string) bool {
	before := recordOf(o.Before, name)
	if before.Asks {
		return before.Again || endsGranted(o)
	}
	return wasRebootedFor(o, name) && o.Uptime > 0 && o.Uptime <= returnsWithin
}

// wasRebootedFor reports whether an engine asked when a granted reboot ended the boot before this one.
func wasRebootedFor(o Observation, name string) bool {
	before := recordOf(o.Before, name)
	return before.Asks && endsGranted(o) || before.Rebooted && o.Before.BootID == o.BootID
}

// endsGranted reports whether the last report of the engines is from the boot that a granted reboot
// ended. If the boot ID did not change, that holds until the first report after the boot.
func endsGranted(o Observation) bool {
	last := o.Record.Last()
	first := last.BootID != o.BootID || o.holds(corev1.NodeMaintenanceInProgress)
	return o.Before != nil && o.rebooted() && o.Before.BootID == last.BootID && first
}

// recordOf returns what an engine has reported, or the zero record.
func recordOf(engines *protocol.Engines, name string) protocol.EngineRecord {
	if engines != nil {
		for _, r := range engines.Reported {
			if r.Name == name {
				return r
			}
		}
	}
	return protocol.EngineRecord{}
}

// WithoutOrigin is a message of condition RebootRequired without its last sentence.
func WithoutOrigin(message string) string {
	if at := strings.LastIndex(message, originIntro); at >= 0 {
		return strings.TrimSpace(message[:at])
	}
	return message
}

// Before is what an engine had reported in this boot, by what the agent's earlier process has written. An engine that did not ask is
// Unknown: what else it reported is not known. Zero: it had not reported.
func Before(engines *protocol.Engines, name, bootID string) engine.Report {
	if engines == nil || engines.BootID != bootID {
		return engine.Report{}
	}
	for _, r := range engines.Reported {
		switch {
		case r.Name != name:
		case !r.Asks:
			return engine.Report{Engine: name, State: engine.Unknown}
		default:
			report := engine.Report{Engine: name, State: engine.Needed, Version: r.Version, Running: r.Running, Client: r.Client}
			if r.Until != nil {
				report.Until = r.Until.UTC()
			}
			return report
		}
	}
	return engine.Report{}
}
