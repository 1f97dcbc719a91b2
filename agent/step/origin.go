package step

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// The last sentence of the engines in condition RebootRequired is its origin: which engines have reported, in which boot, and
// which of them ask for a reboot. It is read by people, and by the next process of the agent: an engine may not repeat what
// it reported, may have forgotten the version, or may be gone. In another boot none of that holds.
//
//	Reported in boot 0d9f… by update-engine (asks by broadcast until 2026-11-24T22:00:00Z for version 4593.1.0),
//	sentinel (asks again after the reboot), rpm-ostree.
const (
	originIntro  = "Reported in boot "
	originAsks   = "asks"
	originAgain  = " again after the reboot"
	originLatch  = " by broadcast"
	originUntil  = " until "
	originTarget = " for version "
)

// origin is that sentence; empty where no engine has reported.
func origin(o Observation) string {
	var from []string
	for _, r := range o.Engines {
		if r.State != engine.Absent {
			from = append(from, r.Engine+asks(r, asksAgain(o, r.Engine)))
		}
	}
	if len(from) == 0 {
		return ""
	}
	return fmt.Sprintf(originIntro+"%s by %s.", o.BootID, strings.Join(from, ", "))
}

// asks is what follows the name of an engine in an origin. A version that could be mistaken for more is left out.
func asks(r engine.Report, again bool) string {
	if r.State != engine.Needed {
		return ""
	}
	text := originAsks
	if again {
		text += originAgain
	}
	if !r.Until.IsZero() {
		text += originLatch + originUntil + r.Until.Format(time.RFC3339)
	}
	if r.Version != "" && !strings.ContainsAny(r.Version, " ,()\t\n") {
		text += originTarget + r.Version
	}
	return " (" + text + ")"
}

// asksAgain reports whether an engine that asks now has asked without a break since before the last granted reboot: in the
// boot that ended, and in the first report of each boot after it. An engine that did not ask in between has a new need. The
// condition shows both; no clock is compared, because a boot may set the host's.
func asksAgain(o Observation, name string) bool {
	bootID, reports := parseOrigin(o.Condition(v1alpha1.NodeRebootRequired).Message)
	for _, r := range reports {
		if r.Engine == name && r.State == engine.Needed {
			return r.again || o.rebooted() && bootID == o.Record.Last().BootID
		}
	}
	return false
}

// originReport is what an origin reports of one engine.
type originReport struct {
	engine.Report
	// again: the need has outlived a granted reboot.
	again bool
}

// parseOrigin reads the origin in the message of the condition. An engine that does not ask is Unknown: nobody knows what
// else it reported. So is one whose need has no end that can be read: it must not last for ever.
func parseOrigin(message string) (bootID string, reports []originReport) {
	_, sentence, found := strings.Cut(afterRequest(message), originIntro)
	if !found {
		return "", nil
	}
	bootID, from, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(sentence), "."), " by ")
	for part := range strings.SplitSeq(from, ", ") {
		name, text, asks := strings.Cut(strings.TrimSuffix(part, ")"), " (")
		r := originReport{Report: engine.Report{Engine: name, State: engine.Unknown}}
		if asks {
			r.State = engine.Needed
			text, r.Version, _ = strings.Cut(text, originTarget)
			text, end, latched := strings.Cut(text, originLatch)
			r.again = strings.Contains(text, originAgain)
			if until, err := time.Parse(time.RFC3339, strings.TrimPrefix(end, originUntil)); err == nil {
				r.Until = until
			}
			if latched && r.Until.IsZero() {
				r.Report = engine.Report{Engine: name, State: engine.Unknown}
			}
		}
		reports = append(reports, r)
	}
	return bootID, reports
}

// WithoutOrigin is a message of condition RebootRequired without its origin, for those who need no boot ID.
func WithoutOrigin(message string) string {
	rest := afterRequest(message)
	before, _, _ := strings.Cut(rest, originIntro)
	return strings.TrimSpace(strings.TrimSuffix(message, rest) + before)
}

// afterRequest is what follows an administrator's request, which comes first and is quoted: its words are no origin.
func afterRequest(message string) string {
	rest, requested := strings.CutPrefix(message, requestIntro)
	if !requested {
		return message
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return "" // It is not what this agent writes.
	}
	return rest[len(quoted):]
}

// Before is what an engine had reported in this boot, as its Node's condition still shows. Zero: it had not reported.
func Before(conditions []corev1.NodeCondition, name, bootID string) engine.Report {
	message := Observation{Conditions: conditions}.Condition(v1alpha1.NodeRebootRequired).Message
	in, reports := parseOrigin(message)
	for _, r := range reports {
		if in == bootID && r.Engine == name {
			return r.Report
		}
	}
	return engine.Report{}
}
