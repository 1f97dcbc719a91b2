package forecast

import (
	"cmp"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// due are the nodes of the policy that become due by their uptime before an instant. A node that its agent is about to report as
// due is due now.
func due(s plan.Snapshot, end time.Time) []Due {
	var all []Due
	for _, n := range s.Nodes {
		most, booted := v1alpha1.ParseMaxUptime(n.Annotations), v1alpha1.BootedAt(n.Annotations)
		if most == 0 || booted.IsZero() || n.NeedsReboot() || n.Outstanding() || s.Governor.Govern(n.Labels).Policy != s.Policy.Name {
			continue
		}
		at := booted.Add(most)
		if at.Before(s.Now) {
			at = s.Now
		}
		if !at.After(end) {
			all = append(all, Due{Node: n.Name, At: at})
		}
	}
	slices.SortFunc(all, func(a, b Due) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Node, b.Node)) })
	return all
}
