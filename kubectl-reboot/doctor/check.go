package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// Candidate is a policy to check before it is applied.
type Candidate struct {
	Name string
	// Refused is the API server's error for the policy, and Expression an error of its expressions.
	// Both are empty if nothing is wrong.
	Refused, Expression string
}

// CheckPolicies finds problems of the candidates in the fleet. unread is the error of reading the
// cluster, or nil. Checks without the data that they need are named in a warning.
func CheckPolicies(all fleet.Fleet, candidates []Candidate, unread error) Diagnosis {
	f := findings{all: []Finding{}}
	for _, c := range candidates {
		p := all.Policy(c.Name)
		f.check = Policies
		for _, why := range []string{c.Refused, c.Expression} {
			if why != "" {
				f.add(Problem, "policy "+c.Name+": "+why, "")
			}
		}
		is := all.Plan(p)
		// The policy that is named may be in a cluster that was not read.
		absent := unread != nil && is.Invalid != nil && is.Invalid.Reason == v1alpha1.ReasonSharedPolicyNotFound
		if is.Invalid != nil && c.Refused == "" && !absent {
			f.add(Problem, "policy "+c.Name+": "+is.Invalid.Message, "")
		}
		if len(all.Views()) > 0 {
			selected(all, p, is.Conflicts, &f)
		}
		rules(p, &f)
		queries(p, &f)
		f.check = Windows
		windowsOf(all, p, &f)
		f.check = Budgets
		limitOf(all, p, &f)
	}
	f.check = Policies
	switch {
	case unread != nil:
		f.add(Warning, "selectors, rings, conflicts, shared limits and the API server's own validation were not checked: "+unread.Error(), "")
	case len(candidates) == 0:
		f.add(Warning, "the cluster has no RebootPolicy, so nothing was checked", "kubectl reboot status")
	case len(all.Views()) == 0:
		f.add(Warning, "selectors, rings and conflicts were not checked, because the cluster has no nodes", "")
	}
	return Diagnosis{At: all.Now, Findings: f.all}
}

// selected finds a policy that selects no nodes, empty rings, and nodes that another policy selects
// with the same priority.
func selected(all fleet.Fleet, p *v1alpha1.RebootPolicy, conflicts []governor.Conflict, f *findings) {
	governed := all.Governed(p.Name)
	if len(governed) == 0 && len(conflicts) == 0 {
		f.add(Warning, "policy "+p.Name+" selects no node that another policy does not govern", "kubectl get nodes --show-labels")
	}
	emptyRings(p, governed, all.Now, f)
	for _, c := range conflicts {
		others := slices.DeleteFunc(slices.Clone(c.Policies), func(name string) bool { return name == p.Name })
		f.add(Problem, fmt.Sprintf("policy %s and %s select %s with the same priority, %d: no reboot is granted there", p.Name,
			strings.Join(others, ", "), message.Some(c.Nodes), p.Spec.Priority), "", c.Nodes...)
	}
}

// rules finds drain rules that never apply, because an earlier rule matches all their pods.
func rules(p *v1alpha1.RebootPolicy, f *findings) {
	all := p.Spec.DrainOrDefault().Rules
	for i, later := range all {
		for j, earlier := range all[:i] {
			covers := earlier.NamespaceSelector == nil ||
				later.NamespaceSelector != nil && includes(*later.NamespaceSelector, *earlier.NamespaceSelector)
			if covers && includes(later.PodSelector, earlier.PodSelector) {
				f.add(Warning, fmt.Sprintf("policy %s: spec.drain.rules[%d] can never match, because rules[%d] matches its pods first", p.Name, i, j), "")
				break
			}
		}
	}
}

// queries finds queries of gates that Prometheus would refuse, even with its experimental features.
func queries(p *v1alpha1.RebootPolicy, f *findings) {
	if p.Spec.Gates == nil {
		return
	}
	f.check = Gates
	promql := parser.NewParser(parser.Options{
		EnableExperimentalFunctions: true, ExperimentalDurationExpr: true, EnableExtendedRangeSelectors: true, EnableBinopFillModifiers: true,
	})
	for i, gate := range p.Spec.Gates.Prometheus {
		if _, err := promql.ParseExpr(gate.Query); err != nil {
			f.add(Problem, fmt.Sprintf("policy %s: spec.gates.prometheus[%d].query is not valid PromQL: %s", p.Name, i, err), "")
		}
	}
}

// includes reports whether narrow has every requirement of wide, so that it selects only pods that
// wide selects.
func includes(narrow, wide v1alpha1.LabelSelector) bool {
	for key, value := range wide.MatchLabels {
		if other, ok := narrow.MatchLabels[key]; !ok || other != value {
			return false
		}
	}
	for _, required := range wide.MatchExpressions {
		same := func(e v1alpha1.LabelSelectorRequirement) bool {
			return e.Key == required.Key && e.Operator == required.Operator && slices.Equal(e.Values, required.Values)
		}
		if !slices.ContainsFunc(narrow.MatchExpressions, same) {
			return false
		}
	}
	return true
}

// FindingLines formats the findings and their number for people, and says what was not checked.
func (d Diagnosis) FindingLines(l terminal.Look, checked int) []string {
	var lines []string
	for _, f := range d.Findings {
		lines = append(lines, f.lines(l)...)
	}
	if len(lines) > 0 {
		lines = append(lines, "")
	}
	return append(lines, message.Count(checked, "policy", "policies")+" checked: specs and selectors. "+d.sum(),
		"The running cluster was not checked. To do that: "+l.Command("kubectl reboot doctor"))
}
