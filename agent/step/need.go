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

// maxWhyBytes limits the length of an administrator's reason in a message.
const maxWhyBytes = 128

// need returns Node condition RebootRequired. Its reason is the need of an engine, else a request
// by an administrator, else the uptime. Its message has all of them, and the engines that have
// reported. Without a need it is Unknown if an engine cannot be queried. Unknown never leads to a
// reboot.
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
	case slices.ContainsFunc(o.Engines, ignoredCondition):
		c.Reason = string(v1alpha1.ReasonConditionIgnored)
	}
	conflict := ""
	if c.Status != corev1.ConditionTrue && o.Coordinators.Found {
		conflict = o.Coordinators.Message // RebootPermitted shows it for a node that asks.
	}
	c.Message = sentences(request(o), labelled(o), report.Message, conflict, uptime(o), origin(reportedEngines(o)))
	return c
}

// sentences joins the sentences that are not empty.
func sentences(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), " ")
}

// request describes an administrator's request, and is empty without one.
func request(o Observation) string {
	if !o.Requested {
		return ""
	}
	return fmt.Sprintf("An administrator asks for a reboot: %q.", message.Shorten(maxWhyBytes, o.RequestedWhy))
}

// labelled describes a request by label, and is empty without one. The value of a label is a single
// word, so it cannot be mistaken for the list of engines that follows.
func labelled(o Observation) string {
	if !o.Labelled {
		return ""
	}
	return fmt.Sprintf("Label %s asks for a reboot: %q.", v1alpha1.LabelRebootRequested, o.LabelValue)
}

// uptime returns the sentence about a node that has been up for too long, and is empty for other
// nodes. The sentence does not change as time passes.
func uptime(o Observation) string {
	if !o.upTooLong() {
		return ""
	}
	return fmt.Sprintf("The node has been up for longer than %s, its maximum under spec.maxUptime of its policy.", o.MaxUptime)
}

// fulfilled reports whether the reboot that just ended answers the request in this sentence. It
// does if the condition that led to the reboot reported the request; a request that was made since
// is a new one. The agent's MaintenanceInProgress is True only until the first report after the
// boot, so a request is removed only once. Another program may have overwritten that condition, so
// the boot of the last report counts, too.
func fulfilled(o Observation, request string) bool {
	reported := strings.Contains(o.Condition(v1alpha1.NodeRebootRequired).Message, request)
	isFirst := o.holds(corev1.NodeMaintenanceInProgress) ||
		o.isTrue(corev1.NodeMaintenanceInProgress) && o.Before != nil && o.Before.BootID != o.BootID
	return request != "" && reported && o.rebooted() && isFirst
}

// The reports of the engines are on the Node twice. People read them in the last sentence of
// condition RebootRequired. The agent's next process reads them in annotation AnnotationEngines.
//
//	Reported by update-engine (asks by broadcast until Tue 2026-11-24 22:00:00 UTC for version 4593.1.0),
//	sentinel (asks again after the reboot), rpm-ostree.
const originIntro = "Reported by "

// reportedEngines returns the current reports of the engines, without those that are not on the
// host.
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

// engineRecord returns what the agent's next process should know of the reports, or nil if that is
// nothing. An engine that has not answered in this boot is left out, because it may not be on the
// host. Once it is recorded, it must become Absent before it is left out.
func engineRecord(o Observation) *protocol.Engines {
	reported := slices.DeleteFunc(reportedEngines(o), func(r protocol.EngineRecord) bool {
		unknown := func(e engine.Report) bool { return e.Engine == r.Name && e.State == engine.Unknown }
		return slices.ContainsFunc(o.Engines, unknown) && Before(o.Before, r.Name, o.BootID).State == ""
	})
	if len(reported) == 0 {
		return nil
	}
	return &protocol.Engines{BootID: o.BootID, Reported: reported, Unexpected: UnexpectedReboot(o)}
}

// origin returns the sentence about the engines, and is empty until one of them has reported.
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

// asks returns the text after the name of an engine in an origin. It leaves out a version that
// could be mistaken for other parts of the sentence.
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
// counts as the same one. A timer on the host may run minutes after each boot, or every few hours.
const returnsWithin = 4 * time.Hour

// asksAgain reports whether an engine requires what the last granted reboot should have ended.
// Either it has required a reboot continuously since before that reboot, or it began to within
// hours of the boot. An engine that did not require the last reboot has a new need. No wall-clock
// times are compared, because a boot may set the host's clock.
func asksAgain(o Observation, name string) bool {
	before := recordOf(o.Before, name)
	if before.Asks {
		return before.Again || endsGranted(o)
	}
	return wasRebootedFor(o, name) && o.Uptime > 0 && o.Uptime <= returnsWithin
}

// wasRebootedFor reports whether an engine required a reboot when a granted reboot ended the
// previous boot.
func wasRebootedFor(o Observation, name string) bool {
	before := recordOf(o.Before, name)
	return before.Asks && endsGranted(o) || before.Rebooted && o.Before.BootID == o.BootID
}

// endsGranted reports whether the last report of the engines is from the boot that a granted reboot
// ended. If the boot ID did not change, this holds until the first report after the boot.
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

// WithoutOrigin returns a message of condition RebootRequired without its last sentence.
func WithoutOrigin(message string) string {
	if i := strings.LastIndex(message, originIntro); i >= 0 {
		return strings.TrimSpace(message[:i])
	}
	return message
}

// Before returns what an engine reported in this boot to an earlier process of the agent. It is
// Unknown if the engine did not require a reboot, because the rest of its report was not recorded.
// It is zero if the engine had not reported.
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
