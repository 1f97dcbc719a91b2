package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/forecast"
	"github.com/reboot-operator/reboot-operator/controllers/plan/attention"
	"github.com/reboot-operator/reboot-operator/controllers/plan/queue"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/slots"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
)

// policies finds nodes that no policy or several policies select, policies that select no nodes,
// and whatever stops a policy.
func policies(c Cluster, f *findings) {
	if len(c.Fleet.Policies) == 0 {
		f.add(Problem, "the cluster has no RebootPolicy, so no node is rebooted; this proposes one", "kubectl reboot status")
		return
	}
	s := status.Of(c.Fleet)
	unselected(c, s.Ungoverned, f)
	conflicts(c, f)
	for _, n := range s.Notices {
		if n.Kind == status.NoPolicy {
			f.add(Problem, n.Message, n.Command, n.Nodes...)
		}
	}
	for i := range s.Policies {
		p := &s.Policies[i]
		if p.Mode == v1alpha1.ModeDryRun && p.Nodes.Pending == 0 { // otherwise a notice says so
			f.add(Warning, "policy "+p.Name+" is in mode DryRun, so it grants nothing", status.LeaveDryRun(p.Name))
		}
		emptyRings(c.Fleet.Policy(p.Name), p.Governed, c.Fleet.Now, f)
		for _, n := range p.Notices {
			if level := level(n); level != "" {
				f.add(level, n.Message, n.Command, append(n.Nodes, heldUp(n, p)...)...)
			}
		}
		if i := slices.IndexFunc(c.Unsent, func(e corev1.Event) bool { return e.InvolvedObject.Name == p.Name }); i >= 0 {
			f.add(Warning, "a service of spec.notify of policy "+p.Name+" was not notified: "+c.Unsent[i].Message, "kubectl describe rbp "+p.Name)
		}
	}
}

// unselected finds nodes that no policy selects. Those that need a reboot are known already.
func unselected(c Cluster, known []string, f *findings) {
	var none []string
	for _, n := range c.Fleet.Views() {
		if g := c.Fleet.Governor.Govern(n); g.Policy == "" && len(g.Rivals) == 0 && !n.Windows && !slices.Contains(known, n.Name) {
			none = append(none, n.Name)
		}
	}
	if len(none) > 0 {
		f.add(Warning, "no policy selects "+message.Some(none)+", so nothing reboots there", "kubectl get rebootpolicies", none...)
	}
}

// heldUp returns the nodes that wait for those of a notice, so that the doctor of each shows it.
func heldUp(n status.Notice, p *status.Policy) []string {
	switch n.Kind {
	case attention.Unavailable, attention.Overdue, attention.Hook, attention.Failed:
	default:
		return nil
	}
	var nodes []string
	for _, w := range p.Waiting {
		switch w.Reason {
		case v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonControlPlaneGuard, v1alpha1.ReasonDomainBusy, v1alpha1.ReasonRingWaits:
			nodes = append(nodes, w.Nodes...)
		}
	}
	return nodes
}

// emptyRings finds rings without nodes. Later rings do not wait for them.
func emptyRings(policy *v1alpha1.RebootPolicy, governed []*record.Node, now time.Time, f *findings) {
	rings, err := queue.RingsOf(policy, now)
	if err != nil {
		return // the policy is Invalid
	}
	members := map[int]int{}
	for _, n := range governed {
		members[rings.Of(n)]++
	}
	for i, ring := range policy.Spec.Rings {
		if members[i] == 0 {
			f.add(Warning, fmt.Sprintf("ring %s of policy %s has no nodes, so later rings do not wait for it", ring.Name, policy.Name), "kubectl edit rbp "+policy.Name)
		}
	}
}

// level returns the severity of a notice. It is empty if another check finds the same problem, or
// if it passes in a moment.
func level(n status.Notice) Level {
	switch n.Kind {
	case attention.Conflict, attention.Agents, status.ManagerDown, status.NoPolicy:
		return ""
	case status.ManagerLags:
		if len(n.Nodes) == 0 {
			return "" // the check of the manager finds it
		}
		return Warning
	case attention.Deadline, attention.RunHooks:
		return Warning
	default:
	}
	switch {
	case n.Reason == v1alpha1.ReasonCoordinatorConflict, n.Reason == v1alpha1.ReasonGateUnreachable,
		n.Reason == v1alpha1.ReasonWindowClosed, n.Reason == v1alpha1.ReasonBlackout, n.Reason == v1alpha1.ReasonBudgetExhausted:
		return ""
	case n.Chosen():
		return Warning
	}
	return Problem
}

// conflicts finds nodes that several policies with the highest priority select.
func conflicts(c Cluster, f *findings) {
	c.eachMessage(f, func(_ *corev1.Node, n *record.Node) (message, command string) {
		rivals := c.Fleet.Governor.Govern(n).Rivals
		if len(rivals) == 0 {
			return "", ""
		}
		return "policies " + strings.Join(rivals, ", ") + " select the same nodes with the same priority, which are not rebooted; raise spec.priority of one",
			"kubectl edit rbp " + c.Fleet.MostSpecific(rivals...)
	})
}

func windows(c Cluster, f *findings) {
	for i := range c.Fleet.Policies {
		windowsOf(c.Fleet, &c.Fleet.Policies[i], f)
	}
}

// windowsOf finds windows that never open, or that are too short.
func windowsOf(all fleet.Fleet, p *v1alpha1.RebootPolicy, f *findings) {
	s := all.Snapshot(p)
	show := "kubectl reboot windows " + p.Name
	if w := s.Window; s.WindowInvalid == "" && !w.Open && w.OpensAt.IsZero() {
		f.add(Problem, "no window of policy "+p.Name+" opens within 400 days", show)
		return
	}
	var longest time.Duration
	for _, w := range p.Spec.Windows {
		longest = max(longest, w.Duration.Duration)
	}
	takes := forecast.Expect(p)
	if most := takes.Drain.Duration + takes.Reboot.Duration; longest > 0 && longest < most {
		f.add(Warning, fmt.Sprintf("the longest window of policy %s lasts %s, and the drain and reboot of a node take %s, so each reboot ends after its window", p.Name, longest, most), show)
	}
}

// budgets finds limits of policies that allow no reboots, and PodDisruptionBudgets that allow no
// evictions.
func budgets(c Cluster, f *findings) {
	for i := range c.Fleet.Policies {
		limitOf(c.Fleet, &c.Fleet.Policies[i], f)
	}
	for i := range c.Budgets {
		if b := &c.Budgets[i]; allowsNothing(b) {
			f.add(Warning, fmt.Sprintf("PodDisruptionBudget %s/%s requires all of its %s to run at all times: their nodes are drained last and retried repeatedly, unless it opens once they are cordoned",
				b.Namespace, b.Name, message.Count(int(b.Status.ExpectedPods), "pod", "pods")), fmt.Sprintf("kubectl edit poddisruptionbudget -n %s %s", b.Namespace, b.Name))
		}
	}
}

// limitOf finds a policy whose limit allows no reboots.
func limitOf(all fleet.Fleet, p *v1alpha1.RebootPolicy, f *findings) {
	decided := all.Plan(p)
	limits, of := all.Policy(decided.LimitOf), ""
	most := limits.Spec.MaxUnavailableOrDefault()
	if ever, err := slots.Limit(most, 100); err != nil || decided.Limit > 0 || len(all.Governed(p.Name)) == 0 && (ever > 0 || len(all.Views()) > 0) {
		return
	}
	if limits.Name != p.Name {
		of = " of policy " + limits.Name + ", whose limit it shares,"
	}
	f.add(Problem, fmt.Sprintf("policy %s grants nothing: maxUnavailable%s is %s", p.Name, of, most.String()),
		fmt.Sprintf(`kubectl patch rbp %s --type=merge -p '{"spec":{"concurrency":{"maxUnavailable":1}}}'`, limits.Name))
}

// allowsNothing reports whether a budget allows no evictions even if all its pods are healthy.
func allowsNothing(b *policyv1.PodDisruptionBudget) bool {
	s := b.Status
	return s.ObservedGeneration >= b.Generation && s.ExpectedPods > 0 && s.DesiredHealthy >= s.ExpectedPods
}

func gates(c Cluster, f *findings) {
	for i := range c.Fleet.Policies {
		p := &c.Fleet.Policies[i]
		for _, g := range p.Status.Gates {
			if g.State == v1alpha1.GateUnreachable {
				f.add(Problem, fmt.Sprintf("gate %s of policy %s cannot be queried: %s", g.Name, p.Name, g.Message), "kubectl describe rbp "+p.Name)
			}
		}
	}
}
