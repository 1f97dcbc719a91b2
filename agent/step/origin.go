package step

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
)

// What the engines have reported is on the Node twice: as the last sentence of condition RebootRequired, for people, and as
// annotation AnnotationEngines, for the next process of the agent.
//
//	Reported by update-engine (asks by broadcast until Tue 2026-11-24 22:00:00 UTC for version 4593.1.0),
//	sentinel (asks again after the reboot), rpm-ostree.
const originIntro = "Reported by "

// reportedEngines is what the engines have reported by now; nil where none has.
func reportedEngines(o Observation) *protocol.Engines {
	now := protocol.Engines{BootID: o.BootID}
	for _, r := range o.Engines {
		if r.State == engine.Absent {
			continue
		}
		record := protocol.EngineRecord{Name: r.Engine}
		if r.State == engine.Needed {
			record.Asks, record.Again, record.Version, record.Running = true, asksAgain(o, r.Engine), r.Version, r.Running
		}
		if record.Asks && !r.Until.IsZero() {
			record.Until = new(metav1.NewTime(r.Until))
		}
		now.Reported = append(now.Reported, record)
	}
	if len(now.Reported) == 0 {
		return nil
	}
	return &now
}

// engineRecord is what the next process of the agent reads of it; nil where that is nothing. An engine that has not answered in this boot
// may not be on the host: one that was named must be Absent once it is not.
func engineRecord(o Observation) *protocol.Engines {
	engines := reportedEngines(o)
	if engines == nil {
		return nil
	}
	engines.Reported = slices.DeleteFunc(engines.Reported, func(r protocol.EngineRecord) bool {
		unknown := func(e engine.Report) bool { return e.Engine == r.Name && e.State == engine.Unknown }
		return slices.ContainsFunc(o.Engines, unknown) && Before(o.Before, r.Name, o.BootID).State == ""
	})
	if len(engines.Reported) == 0 {
		return nil
	}
	return engines
}

// origin is the sentence about them; empty for nil.
func origin(engines *protocol.Engines) string {
	if engines == nil {
		return ""
	}
	from := make([]string, len(engines.Reported))
	for i, r := range engines.Reported {
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
		text += " by broadcast until " + instant(r.Until.Time)
	}
	if r.Version != "" && !strings.ContainsAny(r.Version, " ,()\t\n") {
		text += " for version " + r.Version
	}
	return " (" + text + ")"
}

// asksAgain reports whether an engine that asks now has asked without a break since before the last granted reboot: in the
// boot that ended, and in the first report of each boot after it. An engine that did not ask in between has a new need. The
// record shows both; no clock is compared, because a boot may set the host's.
func asksAgain(o Observation, name string) bool {
	if o.Before == nil {
		return false
	}
	for _, r := range o.Before.Reported {
		if r.Name == name && r.Asks {
			return r.Again || o.rebooted() && o.Before.BootID == o.Record.Last().BootID
		}
	}
	return false
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
			report := engine.Report{Engine: name, State: engine.Needed, Version: r.Version, Running: r.Running}
			if r.Until != nil {
				report.Until = r.Until.UTC()
			}
			return report
		}
	}
	return engine.Report{}
}
