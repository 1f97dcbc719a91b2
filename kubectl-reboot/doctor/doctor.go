// Package doctor finds problems of an installation in a snapshot of the cluster.
package doctor

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// Check is the name of a check.
type Check string

// The checks, in the order in which they are shown.
const (
	// Version checks the version of the API server and of the CustomResourceDefinition, and that the
	// deployed manifests fit the API server.
	Version Check = "Version"
	// Manager checks that the manager runs and acts on the current policies.
	Manager Check = "Manager"
	// Agents checks that each node has a Ready agent of the manager's version.
	Agents Check = "Agents"
	// Rights checks that the ServiceAccounts of the manager and the agents have the permissions
	// they need.
	Rights Check = "Rights"
	// Operators looks for other programs in the cluster that reboot nodes.
	Operators Check = "Operators"
	// Coordinators looks for other programs that reboot hosts, as reported by the agents.
	Coordinators Check = "Coordinators"
	// Engines checks that each agent knows whether its node needs a reboot.
	Engines Check = "Engines"
	// Policies checks which nodes the policies select, and whether something stops a policy.
	Policies Check = "Policies"
	// Windows checks that the windows open, and are long enough for a reboot.
	Windows Check = "Windows"
	// Budgets checks that maxUnavailable and the PodDisruptionBudgets allow reboots at all.
	Budgets Check = "Budgets"
	// Gates checks that the gates can be queried.
	Gates Check = "Gates"
	// Clocks compares the clocks of the nodes and of this machine with that of the API server.
	Clocks Check = "Clocks"
)

// Level is the severity of a finding.
type Level string

const (
	// Problem prevents reboots, or lets another program reboot nodes.
	Problem Level = "Problem"
	// Unchecked means that a check could not run. It counts as a problem, because something may be
	// wrong.
	Unchecked Level = "Unchecked"
	// Warning may be intended, but is worth a look.
	Warning Level = "Warning"
)

// Finding is one thing that is wrong.
type Finding struct {
	Check   Check  `json:"check"`
	Level   Level  `json:"level"`
	Message string `json:"message"`
	// Command fixes the problem or shows more. It is empty if the message says what to do.
	Command string `json:"command,omitempty"`
	// Nodes lists the affected nodes. It is empty if the finding concerns the whole cluster.
	Nodes []string `json:"nodes,omitempty"`
}

// Cluster holds what was read from the cluster. Unread has the errors for everything that is
// missing.
type Cluster struct {
	Fleet fleet.Fleet
	// Major and Minor are the version of the API server, or 0 if unknown.
	Major, Minor int
	// ServerTime is the API server's clock at Fleet.Now, or zero if unknown.
	ServerTime  time.Time
	DaemonSets  []appsv1.DaemonSet
	Deployments []appsv1.Deployment
	// AgentPods holds the pods of the agents.
	AgentPods []corev1.Pod
	// Leases holds the Leases that the kubelets renew.
	Leases  []coordinationv1.Lease
	Budgets []policyv1.PodDisruptionBudget
	// Schema is the OpenAPI schema of RebootPolicy in the cluster, or nil if unknown.
	Schema map[string]any
	// Unsent holds the events about notifications that a service did not get.
	Unsent []corev1.Event
	// Missing lists permissions that the operator's ServiceAccounts need but do not have.
	Missing []Right
	// Unread has the error for what a check needs and could not be read.
	Unread map[Check]error
}

// Diagnosis is the result of all checks.
type Diagnosis struct {
	At       time.Time `json:"at"`
	Findings []Finding `json:"findings"`
}

// checks maps each check to its function.
var checks = []struct {
	check Check
	find  func(Cluster, *findings)
}{
	{Version, version},
	{Manager, manager},
	{Agents, agents},
	{Rights, rights},
	{Operators, operators},
	{Coordinators, coordinators},
	{Engines, engines},
	{Policies, policies},
	{Windows, windows},
	{Budgets, budgets},
	{Gates, gates},
	{Clocks, clocks},
}

// Examine runs all checks. A check without the data that it needs is Unchecked.
func Examine(c Cluster) Diagnosis {
	f := findings{all: []Finding{}}
	for _, k := range checks {
		f.check = k.check
		k.find(c, &f)
		switch why := c.Unread[k.check]; {
		case why == nil:
		case apierrors.IsForbidden(why):
			f.add(Unchecked, why.Error(), letLook)
		default:
			f.add(Unchecked, why.Error(), "")
		}
	}
	return Diagnosis{At: c.Fleet.Now, Findings: f.all}
}

// findings collects the findings of the checks.
type findings struct {
	check Check
	all   []Finding
}

// add adds a finding, with a command that fixes it or shows more. Without nodes it concerns the
// whole cluster.
func (f *findings) add(level Level, message, command string, nodes ...string) {
	f.all = append(f.all, Finding{Check: f.check, Level: level, Message: message, Command: command, Nodes: nodes})
}

// letLook grants a user read access to everything that the doctor examines.
const letLook = "kubectl create clusterrolebinding reboot-doctor --clusterrole=reboot-operator-doctor --user=USER"

// About returns the findings that concern one node or the whole cluster.
func (d Diagnosis) About(node string) Diagnosis {
	d.Findings = slices.DeleteFunc(slices.Clone(d.Findings), func(f Finding) bool {
		return len(f.Nodes) > 0 && !slices.Contains(f.Nodes, node)
	})
	return d
}

// Bad returns the number of findings that are more than warnings.
func (d Diagnosis) Bad() int {
	bad := 0
	for _, f := range d.Findings {
		if f.Level != Warning {
			bad++
		}
	}
	return bad
}

// indent is the width of the mark and the name of a check.
const indent = 16

// marks maps each level to the mark in front of a finding.
var marks = map[Level]struct {
	mark  string
	style terminal.Style
}{
	Problem: {"✗", terminal.Bad}, Unchecked: {"?", terminal.Bad}, Warning: {"!", terminal.Wait},
}

// Lines formats the report for people: every check, its problems with a command that helps, and a
// summary.
func (d Diagnosis) Lines(l terminal.Look) []string {
	var lines []string
	for _, k := range checks {
		well := true
		for _, f := range d.Findings {
			if f.Check == k.check {
				well = false
				lines = append(lines, f.lines(l)...)
			}
		}
		if well {
			lines = append(lines, l.Theme.Paint(terminal.Good, "✓")+" "+string(k.check))
		}
	}
	return append(lines, "", d.sum())
}

func (f Finding) lines(l terminal.Look) []string {
	m := marks[f.Level]
	message := f.Message
	if f.Level == Unchecked {
		message = "could not be checked: " + message
	}
	lines := l.Hang(l.Theme.Paint(m.style, m.mark)+" "+terminal.Fit(string(f.Check), indent-2), indent, message)
	if f.Command != "" {
		lines = append(lines, strings.Repeat(" ", indent)+l.Command(f.Command))
	}
	return lines
}

// sum formats the summary.
func (d Diagnosis) sum() string {
	bad := d.Bad()
	if bad == 0 && len(d.Findings) == 0 {
		return "Nothing is wrong."
	}
	return message.Count(bad, "problem", "problems") + ", " + message.Count(len(d.Findings)-bad, "warning", "warnings") + "."
}
