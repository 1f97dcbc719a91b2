package plan

import (
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// assumedReboot is what drain and reboot together are taken to last before the policy has seen one.
const assumedReboot = 5 * time.Minute

// reserve is how much of a window has to be left to begin a reboot: what one takes, but at most all of its time-outs and half
// of the longest window. Slow reboots, or a node whose clock is wrong, could else keep the policy from ever making another
// one, and so from ever learning better.
func (f *fleet) reserve() time.Duration {
	var longest time.Duration
	for _, w := range f.Policy.Spec.Windows {
		longest = max(longest, w.Duration.Duration)
	}
	drain, reboot := f.Policy.Spec.DrainOrDefault(), f.Policy.Spec.RebootOrDefault()
	most := drain.TimeoutOrDefault() + drain.VolumeDetachTimeoutOrDefault() + reboot.TimeoutOrDefault()
	takes := min(rebootTakes(f.Policy.Status.History), most)
	if longest > 0 {
		takes = min(takes, longest/2)
	}
	return takes
}

// rebootTakes is what drain and reboot together last at most in nine cases of ten, by the policy's history.
func rebootTakes(history []v1alpha1.PastReboot) time.Duration {
	var took []time.Duration
	for _, past := range history {
		if past.Result == v1alpha1.RebootSucceeded && past.Drain != nil && past.Reboot != nil {
			took = append(took, past.Drain.Duration+past.Reboot.Duration)
		}
	}
	if len(took) == 0 {
		return assumedReboot
	}
	slices.Sort(took)
	return took[(len(took)*9+9)/10-1]
}

// windowTooShort keeps a reboot from being begun that would end after the window. A node that holds a grant keeps it: the
// window was long enough then, and hooks may have taken their time since.
func windowTooShort(f *fleet, n *Node) *Objection {
	closes := f.Window.ClosesAt
	if closes.IsZero() || f.inEntry[n.Name] || !f.Now.Add(f.spare).After(closes) {
		return nil
	}
	return objection(v1alpha1.ReasonWindowTooShort, "no reboot is begun so shortly before the end: the window closes %s, "+
		"and status.history tells how long a drain and a reboot take", instant(closes))
}
