// Package timetable shows the forecast of a policy: which node is rebooted when, as a table and as a picture.
package timetable

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/forecast"
	"github.com/reboot-operator/reboot-operator/internal/timing"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/calendar"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
)

// mostOpenings is the most windows that a picture is drawn over; a forecast ends within a year.
const mostOpenings = 2000

// Timetable is the forecast of one policy, and the hours it goes by.
type Timetable struct {
	forecast.Forecast

	// WaitsFor is why a node of Reboots waits now, by its name. A node whose reboot is in progress or due waits for nothing.
	WaitsFor map[string]v1alpha1.Reason `json:"waitsFor,omitempty"`
	// Silent is of how many nodes it is not known whether they need a reboot, as they have no agent that works.
	Silent int `json:"silent,omitempty"`
	// Calendar is the windows and blackouts from now until all is done.
	Calendar []calendar.Period `json:"calendar"`
	// Always reports that the policy has no windows.
	Always bool `json:"always,omitempty"`
}

// Of is the timetable of a policy of the fleet.
func Of(f fleet.Fleet, policy *v1alpha1.RebootPolicy) Timetable {
	t := Timetable{Forecast: forecast.Of(f.Snapshot(policy), forecast.Thorough), WaitsFor: map[string]v1alpha1.Reason{}, Silent: f.Unknown(policy)}
	if t.Reboots == nil {
		t.Reboots = []forecast.Reboot{} // programs iterate over it
	}
	for _, d := range f.Plan(policy).Decisions {
		if d.Status == corev1.ConditionFalse {
			t.WaitsFor[d.Node] = d.Reason
		}
	}
	for _, s := range t.Stays {
		delete(t.WaitsFor, s.Node)
	}
	c := calendarTo(policy, f.Now, t.end())
	if i := slices.IndexFunc(c.Entries, func(e calendar.Period) bool { return !e.From.Before(t.end()) }); i >= 0 {
		c.Entries = c.Entries[:max(i, 1)] // what begins later is of no interest
	}
	t.Calendar, t.Always = c.Entries, c.Always
	return t
}

// calendarTo is the windows of a policy up to an instant, and a few more. No reboot may start in some of them.
func calendarTo(policy *v1alpha1.RebootPolicy, now, end time.Time) calendar.Calendar {
	for next := 2; ; next *= 2 {
		c := calendar.Of(policy, now, min(next, mostOpenings))
		if last := len(c.Entries) - 1; next >= mostOpenings || last < 0 || !c.Entries[last].From.Before(end) {
			return c
		}
	}
}

// end is when there is nothing more to show: all is done, or the window has closed in which that is to be.
func (t Timetable) end() time.Time {
	end := t.CompletionAt
	if len(t.Reboots) > 0 {
		end = timing.Latest(end, t.Reboots[len(t.Reboots)-1].EndsAt)
	}
	if w := t.Window; w != nil {
		end = timing.Latest(end, w.ClosesAt)
	}
	return end
}
