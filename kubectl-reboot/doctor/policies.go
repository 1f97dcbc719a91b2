package doctor

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/forecast"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// policies finds nodes that no policy selects or that several do, policies that select none, and what stops a policy.
func policies(c Cluster) []Finding {
	f := c.Fleet
	if len(f.Policies) == 0 {
		return []Finding{{Level: Problem, Message: "there is no RebootPolicy: no node is rebooted", Command: "kubectl apply -f config/samples/dry-run.yaml"}}
	}
	var found []Finding
	var none []string
	for _, n := range f.Views() {
		if g := f.Governor.Govern(n.Labels); g.Policy == "" && len(g.Rivals) == 0 {
			none = append(none, n.Name)
		}
	}
	if len(none) > 0 {
		found = append(found, Finding{Level: Warning, Message: "no policy selects " + terminal.Some(none) + ": never rebooted", Command: "kubectl get rebootpolicies", Nodes: none})
	}
	found = append(found, c.conflicts()...)
	s := status.Of(f)
	for i := range s.Policies {
		p := &s.Policies[i]
		if p.Nodes.Selected == 0 && len(f.Plan(f.Policy(p.Name)).Conflicts) == 0 {
			found = append(found, Finding{Level: Warning, Message: "policy " + p.Name + " governs no node", Command: "kubectl edit rbp " + p.Name})
		}
		if p.Mode == v1alpha1.ModeDryRun {
			found = append(found, Finding{Level: Warning, Message: "policy " + p.Name + " is in mode DryRun: it grants nothing", Command: fmt.Sprintf(`kubectl patch rbp %s --type=merge -p '{"spec":{"mode":"Enforce"}}'`, p.Name)})
		}
		found = append(found, c.emptyRings(f.Policy(p.Name))...)
		for _, n := range p.Notices {
			if level := levels[n.Kind]; level != "" {
				found = append(found, Finding{Level: level, Message: n.Message, Command: n.Command})
			}
		}
	}
	return found
}

// emptyRings finds the rings of a policy that have no node: later rings do not wait for them.
func (c Cluster) emptyRings(policy *v1alpha1.RebootPolicy) []Finding {
	rings, err := plan.RingsOf(policy)
	if err != nil {
		return nil // the policy is Invalid
	}
	members := map[int]int{}
	for _, n := range c.Fleet.Views() {
		if c.Fleet.Governor.Govern(n.Labels).Policy == policy.Name {
			members[rings.Of(n)]++
		}
	}
	var found []Finding
	for i, ring := range policy.Spec.Order {
		if members[i] == 0 {
			found = append(found, Finding{
				Level: Warning, Message: fmt.Sprintf("ring %s of policy %s has no node: no later ring waits for it", ring.Name, policy.Name), Command: "kubectl edit rbp " + policy.Name,
			})
		}
	}
	return found
}

// levels are those of the notices that are findings. The others have a check of their own, or are over in a moment.
var levels = map[status.Kind]Level{
	status.Invalid: Problem, status.Halted: Problem, status.Paused: Warning, status.Urgent: Warning, status.WriteRefused: Problem, status.Overdue: Problem, status.Deleting: Warning,
	status.DeadlineNear: Warning, status.RunHooks: Warning,
}

// conflicts finds the nodes that several policies of the highest priority select.
func (c Cluster) conflicts() []Finding {
	found := c.byMessage(func(_ *corev1.Node, n *plan.Node) (message, command string) {
		rivals := c.Fleet.Governor.Govern(n.Labels).Rivals
		if len(rivals) == 0 {
			return "", ""
		}
		return "policies " + strings.Join(rivals, ", ") + " select the same nodes with the same priority, which are not rebooted",
			"kubectl reboot explain " + n.Name
	})
	for i := range found {
		found[i].Message += ": " + terminal.Some(found[i].Nodes)
	}
	return found
}

func windows(c Cluster) []Finding {
	var found []Finding
	for i := range c.Fleet.Policies {
		p := &c.Fleet.Policies[i]
		s := c.Fleet.Snapshot(p)
		show := "kubectl reboot windows " + p.Name
		if w := s.Window; s.WindowInvalid == "" && !w.Open && w.OpensAt.IsZero() {
			found = append(found, Finding{Level: Problem, Message: "no window of policy " + p.Name + " opens within 400 days", Command: show})
			continue
		}
		var longest time.Duration
		for _, w := range p.Spec.Windows {
			longest = max(longest, w.Duration.Duration)
		}
		takes := forecast.Expect(p)
		if most := takes.Drain.Duration + takes.Reboot.Duration; longest > 0 && longest < most {
			found = append(found, Finding{
				Level:   Warning,
				Message: fmt.Sprintf("the longest window of policy %s lasts %s, and drain and reboot of a node take %s: each reboot ends after the window", p.Name, longest, most),
				Command: show,
			})
		}
	}
	return found
}

// budgets finds limits that allow nothing, ever: of policies, and PodDisruptionBudgets that no drain gets past.
func budgets(c Cluster) []Finding {
	var found []Finding
	for i := range c.Fleet.Policies {
		p := &c.Fleet.Policies[i]
		if most := p.Spec.MaxUnavailableOrDefault(); c.Fleet.Plan(p).Limit == 0 && len(c.Fleet.Governed(p.Name)) > 0 {
			found = append(found, Finding{
				Level: Problem, Message: fmt.Sprintf("policy %s grants nothing: maxUnavailable is %s", p.Name, most.String()),
				Command: fmt.Sprintf(`kubectl patch rbp %s --type=merge -p '{"spec":{"concurrency":{"maxUnavailable":1}}}'`, p.Name),
			})
		}
	}
	for i := range c.Budgets {
		if b := &c.Budgets[i]; allowsNothing(b) {
			found = append(found, Finding{
				Level:   Warning,
				Message: fmt.Sprintf("PodDisruptionBudget %s/%s wants all of its %s at any time: a drain of their nodes times out, unless a rule in spec.drain.rules passes it", b.Namespace, b.Name, message.Count(int(b.Status.ExpectedPods), "pod", "pods")),
				Command: fmt.Sprintf("kubectl edit poddisruptionbudget -n %s %s", b.Namespace, b.Name),
			})
		}
	}
	return found
}

// allowsNothing reports whether a budget allows no eviction even while all of its pods are healthy.
func allowsNothing(b *policyv1.PodDisruptionBudget) bool {
	s := b.Status
	return s.ObservedGeneration >= b.Generation && s.ExpectedPods > 0 && s.DesiredHealthy >= s.ExpectedPods
}

func gates(c Cluster) []Finding {
	var found []Finding
	for i := range c.Fleet.Policies {
		p := &c.Fleet.Policies[i]
		for _, g := range p.Status.Gates {
			if g.State == v1alpha1.GateUnreachable {
				found = append(found, Finding{Level: Problem, Message: fmt.Sprintf("gate %s of policy %s cannot be asked: %s", g.Name, p.Name, g.Message), Command: "kubectl describe rbp " + p.Name})
			}
		}
	}
	return found
}
