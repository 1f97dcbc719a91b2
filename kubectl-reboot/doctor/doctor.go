// Package doctor finds what is wrong with an installation, from what was read of the cluster at one instant.
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

// Check is one thing that is looked at.
type Check string

// The checks, in the order in which they are shown.
const (
	// Version is the version of the API server, and whether the manifests that are deployed fit it.
	Version Check = "Version"
	// Manager is whether the manager runs and acts on the policies as they are.
	Manager Check = "Manager"
	// Agents is whether each node has an agent that is Ready, of the manager's version.
	Agents Check = "Agents"
	// Rights is whether the ServiceAccounts of manager and agents may do what they have to.
	Rights Check = "Rights"
	// Operators is which other programs of the cluster reboot nodes.
	Operators Check = "Operators"
	// Coordinators is which other programs reboot hosts, as the agents report.
	Coordinators Check = "Coordinators"
	// Engines is whether each agent knows if its node needs a reboot.
	Engines Check = "Engines"
	// Policies is which nodes the policies select, and what stops a policy.
	Policies Check = "Policies"
	// Windows is whether the windows open, and are long enough for a reboot.
	Windows Check = "Windows"
	// Budgets is whether maxUnavailable and the PodDisruptionBudgets allow a reboot at all.
	Budgets Check = "Budgets"
	// Gates is whether the gates can be asked.
	Gates Check = "Gates"
	// Clocks is whether the clocks of the nodes and of this machine agree with that of the API server.
	Clocks Check = "Clocks"
)

// Level is how bad a finding is.
type Level string

const (
	// Problem keeps nodes from being rebooted, or lets another program reboot them.
	Problem Level = "Problem"
	// Unchecked means that a check could not be made. It counts as a problem: it is not known that all is well.
	Unchecked Level = "Unchecked"
	// Warning is worth a look, and may be meant so.
	Warning Level = "Warning"
)

// Finding is one thing that is wrong.
type Finding struct {
	Check   Check  `json:"check"`
	Level   Level  `json:"level"`
	Message string `json:"message"`
	// Command fixes it, or shows more. Empty: the message states what to do.
	Command string `json:"command,omitempty"`
	// Nodes are those it is about. Empty: it is about the whole cluster.
	Nodes []string `json:"nodes,omitempty"`
}

// Cluster is what was read. What could not be read is missing, and in Unread.
type Cluster struct {
	Fleet fleet.Fleet
	// Major and Minor are the version of the API server. 0: unknown.
	Major, Minor int
	// ServerTime is the API server's clock at Fleet.Now. Zero: unknown.
	ServerTime  time.Time
	DaemonSets  []appsv1.DaemonSet
	Deployments []appsv1.Deployment
	// AgentPods are the pods of the agents.
	AgentPods []corev1.Pod
	// Leases are those that the kubelets renew.
	Leases  []coordinationv1.Lease
	Budgets []policyv1.PodDisruptionBudget
	// Missing are the rights that a ServiceAccount of the operator should have and has not.
	Missing []Right
	// Unread states why something could not be read, by the check that needs it.
	Unread map[Check]error
}

// Diagnosis is all that was found.
type Diagnosis struct {
	At       time.Time `json:"at"`
	Findings []Finding `json:"findings"`
}

// checks are what is done for each check.
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

// Examine makes every check. A check that misses something it needs is Unchecked.
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

// findings takes what the checks find, one after the other.
type findings struct {
	check Check
	all   []Finding
}

// add takes a finding, and the command that fixes it or shows more. Without nodes it is about the whole cluster.
func (f *findings) add(level Level, message, command string, nodes ...string) {
	f.all = append(f.all, Finding{Check: f.check, Level: level, Message: message, Command: command, Nodes: nodes})
}

// letLook gives a user the rights to read everything.
const letLook = "kubectl create clusterrolebinding reboot-doctor --clusterrole=reboot-operator-doctor --user=USER"

// About keeps what concerns one node: what is about it, and what is about the whole cluster.
func (r Diagnosis) About(node string) Diagnosis {
	r.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool {
		return len(f.Nodes) > 0 && !slices.Contains(f.Nodes, node)
	})
	return r
}

// Bad is how many findings are no mere warnings.
func (r Diagnosis) Bad() int {
	bad := 0
	for _, f := range r.Findings {
		if f.Level != Warning {
			bad++
		}
	}
	return bad
}

// indent is the width of a mark and of a check's name.
const indent = 16

// marks are what is there before a finding.
var marks = map[Level]struct {
	mark  string
	style terminal.Style
}{
	Problem: {"✗", terminal.Bad}, Unchecked: {"?", terminal.Bad}, Warning: {"!", terminal.Wait},
}

// Lines is the report for people: every check, what is wrong with a command that helps, and the sum.
func (r Diagnosis) Lines(l terminal.Look) []string {
	var lines []string
	for _, k := range checks {
		well := true
		for _, f := range r.Findings {
			if f.Check == k.check {
				well = false
				lines = append(lines, f.lines(l)...)
			}
		}
		if well {
			lines = append(lines, l.Theme.Paint(terminal.Good, "✓")+" "+string(k.check))
		}
	}
	return append(lines, "", r.sum())
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

// sum is the last line.
func (r Diagnosis) sum() string {
	bad := r.Bad()
	if bad == 0 && len(r.Findings) == 0 {
		return "Nothing is wrong."
	}
	return message.Count(bad, "problem", "problems") + ", " + message.Count(len(r.Findings)-bad, "warning", "warnings") + "."
}
