package verdict

import (
	"fmt"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// outsideWindow: by the clock of the manager that granted, which the ledger's entry tells, every grant began in a window.
// Entries that were seen before on the same node are adopted ones, and began then.
func outsideWindow(h History) []Violation {
	var found []Violation
	seen := map[string]bool{}
	for _, r := range h.Revisions {
		if r.Node != nil {
			if grant, err := v1alpha1.ParseGrant(r.Node.Annotations); err == nil && grant != nil {
				seen[key(r.Node.Name, grant.Seq)] = true
			}
		}
		if r.Policy == nil || len(r.Policy.Spec.Windows) == 0 {
			continue
		}
		for _, e := range r.Policy.Status.Grants {
			if who := key(e.Node, e.Seq); !seen[who] {
				seen[who] = true
				if !Open(r.Policy.Spec.Windows, h.Zones, e.At.Time) {
					found = append(found, Violation{r.Number, "outside the window", fmt.Sprintf("%s was granted at %s", who, e.At.UTC().Format(time.RFC3339))})
				}
			}
		}
	}
	return found
}

// Open tells whether one of these daily windows is open. It reads docs/policy.md by the letter, minute by minute, and
// shares nothing with what the manager uses: a window starts on each civil date at the first instant at which the clocks of
// its zone read its start or later, and lasts so long.
func Open(windows []v1alpha1.Window, zones map[string]*time.Location, at time.Time) bool {
	for _, w := range windows {
		zone := zones[w.TimeZone]
		if zone == nil {
			zone = time.UTC
		}
		for day := -2; day <= 1; day++ {
			y, m, d := at.In(zone).AddDate(0, 0, day).Date()
			start, had := startOf(w.Start, zone, time.Date(y, m, d, 0, 0, 0, 0, time.UTC))
			if had && !at.Before(start) && at.Before(start.Add(w.Duration.Duration)) {
				return true
			}
		}
	}
	return false
}

// startOf is the first minute of a civil date at which clocks read a time or later; date is its midnight, as if in UTC.
func startOf(clock string, zone *time.Location, date time.Time) (time.Time, bool) {
	want := date.Format(time.DateOnly)
	for t := date.Add(-16 * time.Hour); t.Before(date.Add(40 * time.Hour)); t = t.Add(time.Minute) {
		local := t.In(zone)
		if local.Format(time.DateOnly) == want && local.Format("15:04") >= clock {
			return t, true
		}
	}
	return time.Time{}, false
}
