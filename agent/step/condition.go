package step

import (
	"fmt"
	"time"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// maxConditionAhead is the largest clock difference that the agent trusts. A condition whose
// transition lies further in the future does not count.
const maxConditionAhead = 5 * time.Minute

// AllReports adds to the reports of the engines those about others that may ask for a reboot: the
// host's FleetLock client, and conditions of the Node. It changes nothing until all engines have
// reported.
func AllReports(reports []engine.Report, o Observation) []engine.Report {
	if reports == nil {
		return nil
	}
	reports = WithFleetLock(reports, o)
	for _, rule := range o.NodeConditions {
		report, _ := conditionReport(o, rule)
		if report.State != engine.Absent {
			reports = append(reports, report)
		}
	}
	return reports
}

// conditionsChange returns the earliest time at which a condition of the Node begins to ask for a
// reboot, or to count, or the zero time.
func conditionsChange(o Observation) time.Time {
	var next time.Time
	for _, rule := range o.NodeConditions {
		_, changes := conditionReport(o, rule)
		next = timing.Earliest(next, changes)
	}
	return next
}

// conditionReport returns the report about a condition of the Node, and when it changes by itself. A
// condition that does not have the status is Absent, but if the last reboot was for it, the report
// stays, so that a condition that keeps coming back ends like an update that rolls back. A condition
// that should ask but cannot count is reported, too: a reboot did not change it, or it is not known
// whether one did.
func conditionReport(o Observation, rule v1alpha1.NodeConditionNeed) (report engine.Report, changes time.Time) {
	name := "condition " + string(rule.Type)
	c, since := o.Condition(rule.Type), time.Time{}
	if c.Status == rule.StatusOrDefault() {
		since = c.LastTransitionTime.Time
	}
	text := fmt.Sprintf("Node condition %s has been %s since %s", rule.Type, c.Status, timing.Instant(since))
	ignored := func(why string) engine.Report {
		return engine.Report{Engine: name, State: engine.NotNeeded, Reason: v1alpha1.ReasonConditionIgnored, Message: engine.Shorten(text + why)}
	}
	asksFrom := since.Add(rule.For.Duration)
	switch {
	case c.Status != rule.StatusOrDefault():
	case since.UTC().Year() < v1alpha1.FirstYear:
		text = fmt.Sprintf("Node condition %s is %s and does not count", rule.Type, c.Status)
		return ignored(": it has no valid transition time. Correct the program that writes it."), time.Time{}
	case since.Sub(o.Now) > maxConditionAhead:
		return ignored(", which is in the future, and does not count. Correct the clock of the program that writes it."), since.Add(-maxConditionAhead)
	case o.Uptime <= 0:
		return ignored(". It does not count, because the uptime of the host cannot be read."), time.Time{}
	case !since.After(lastBoot(o)):
		return ignored(". The reboot since then did not end it, so it does not ask again until it changes. Repair the cause, or request a reboot."), time.Time{}
	case o.Now.Before(asksFrom):
		changes = asksFrom
	default:
		return engine.Report{
			Engine: name, State: engine.Needed, Reason: v1alpha1.ReasonNodeCondition,
			Message: engine.Shorten(fmt.Sprintf("%s, for longer than %s.", text, rule.For.Duration)),
		}, time.Time{}
	}
	if wasRebootedFor(o, name) {
		return engine.UpToDate(name, fmt.Sprintf("Node condition %s does not ask for a reboot.", rule.Type)), changes
	}
	return engine.Report{Engine: name, State: engine.Absent}, changes
}

// lastBoot returns the time of the last boot. A granted reboot counts from when it passed the point of
// no return, even if the clock of the host has been set back since.
func lastBoot(o Observation) time.Time {
	boot := o.booted()
	if passed := o.Record.Last().At.Time; o.rebooted() && !passed.After(o.Now) {
		return timing.Latest(boot, passed)
	}
	return boot
}

// ignoredCondition reports whether a report is about a condition that lasts and does not count.
func ignoredCondition(r engine.Report) bool { return r.Reason == v1alpha1.ReasonConditionIgnored }
