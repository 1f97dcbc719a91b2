package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// transcript tells a story to a person at three in the morning: the time, what was done, and,
// behind a bar, what is different from now on. It describes nodes by what an administrator sees on
// them.
type transcript struct {
	text strings.Builder
	// events are the events since the last record.
	events []string
	// shown holds the line of each policy, and seen the last line that was written for each policy
	// and node.
	shown, seen map[string]string
}

func (t *transcript) String() string { return t.text.String() }

func (t *transcript) add(format string, args ...any) {
	t.events = append(t.events, fmt.Sprintf(format, args...))
}

// record writes down one instant if anything happened.
func (t *transcript) record(c *cluster) {
	lines := t.events
	t.events = nil
	show := func(name, line string) {
		if t.seen[name] != line {
			t.seen[name] = line
			lines = append(lines, fmt.Sprintf("| %-10s %s", name, line))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.shown)) {
		if c.policies[name] != nil {
			show(name, t.shown[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.hosts)) {
		show(name, c.hosts[name].describe())
	}
	for i, line := range lines {
		when := ""
		if i == 0 {
			when = stamp(c.now)
		}
		fmt.Fprintf(&t.text, "%-13s  %s\n", when, line)
	}
}

func stamp(t time.Time) string { return t.Format("Mon 15:04:05") }

// describe returns a Node in one line.
func (h *host) describe() string {
	if h.node == nil {
		return "the Node is deleted"
	}
	n := h.view()
	parts := []string{h.condition(n)}
	for _, detail := range []struct {
		is   bool
		text string
	}{
		{n.Cordoned, "cordoned by " + h.cordonedBy},
		{!n.Ready, "not Ready"},
		{n.RequiredReason == v1alpha1.ReasonConditionIgnored, string(n.RequiredReason)},
		{n.Deleting, "being deleted"},
		{n.Paused(evening), "paused"},
		{n.Pending != "", "reboot pending"},
		{n.Pending == corev1.TaintEffectNoSchedule, "no new pods"},
		{h.hasStartupTaint(), "takes no pods"},
		{n.Labels[v1alpha1.LabelExcludeFromLoadBalancers] != "", "out of load balancers"},
		{h.showsAutoscalers && n.Annotations[v1alpha1.AnnotationDoNotDisrupt] != "", "kept from autoscalers"},
		{h.showsAutoscalers && n.Labels[v1alpha1.LabelExcludeFromRemediation] != "", "kept from health controllers"},
	} {
		if detail.is {
			parts = append(parts, detail.text)
		}
	}
	return strings.Join(parts, ", ")
}

func (h *host) condition(n record.Node) string {
	permitted := n.Permitted
	switch {
	case permitted != nil && permitted.Status == corev1.ConditionFalse:
		return fmt.Sprintf("waits: %s, %s", permitted.Reason, permitted.Message)
	case permitted != nil && permitted.Reason != string(v1alpha1.ReasonGranted):
		return fmt.Sprintf("%s: %s", permitted.Reason, permitted.Message)
	case attempted(n) && n.Progress.Phase == protocol.PhaseDraining:
		return "drains"
	case attempted(n) && n.BootID == n.Progress.BootID:
		return "reboots"
	case attempted(n):
		return "is up on " + n.BootID
	case n.Outstanding():
		return "is granted a reboot"
	case n.NeedsReboot():
		return "needs a reboot"
	}
	return "in service on " + n.BootID
}
