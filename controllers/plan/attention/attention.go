// Package attention says what needs a person, from a plan. Status, dashboard, doctor and metrics
// all show this, so that they agree.
package attention

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/run"
	"github.com/reboot-operator/reboot-operator/controllers/plan/slots"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Kind groups what may need a person. It is also the label kind of a metric.
type Kind string

// The kinds of attention, most important first.
const (
	Invalid      Kind = "Invalid"
	Halted       Kind = "Halted"
	Urgent       Kind = "Urgent"
	Paused       Kind = "Paused"
	Conflict     Kind = "Conflict"
	Agents       Kind = "AgentsNeeded"
	WriteRefused Kind = "WriteRefused"
	Overdue      Kind = "Overdue"
	Failed       Kind = "Failed"
	Unavailable  Kind = "Unavailable"
	Hook         Kind = "HookUnanswered"
	Blocked      Kind = "Blocked"
	Deadline     Kind = "DeadlineNear"
	RunHooks     Kind = "RunHooks"
	Deleting     Kind = "Deleting"
)

// Kinds lists every kind.
var Kinds = []Kind{
	Invalid, Halted, Urgent, Paused, Conflict, Agents, WriteRefused, Overdue,
	Failed, Unavailable, Hook, Blocked, Deadline, RunHooks, Deleting,
}

// Item is something that does not go on by itself, with a sentence for a person and a command
// that helps.
type Item struct {
	Kind Kind
	// Reason says why nodes fail or wait. It is empty if the kind already says it.
	Reason v1alpha1.Reason
	// Nodes are the nodes it is about, empty if it is about the policy.
	Nodes   []string
	Message string
	Command string
}

// Chosen reports whether a person has asked for this state. Nobody has to act, but everybody should
// know.
func (i Item) Chosen() bool {
	return i.Kind == Urgent || i.Kind == Paused || i.Kind == Deleting
}

// maxNamed is the number of nodes with the same trouble that get a sentence each.
const maxNamed = 3

// Commands that show more about what needs a person.
const (
	// LookAtAgents shows whether the agents run.
	LookAtAgents = "kubectl get daemonsets,pods -A -l app.kubernetes.io/name=reboot-operator -o wide"
	// LookAtAdmission lists most of what may refuse a write.
	LookAtAdmission = "kubectl get validatingadmissionpolicies,validatingwebhookconfigurations"
)

// Of returns what needs a person, most important first.
func Of(p *plan.Plan, policy *v1alpha1.RebootPolicy, now time.Time) []Item {
	a := collector{policy: policy, plan: p, now: now}
	a.ofPolicy()
	a.ofAgents()
	a.ofConditions()
	a.ofReboots()
	a.ofFailures()
	a.ofUnavailable()
	a.ofBlocked()
	a.ofRun()
	return a.list
}

// collector collects what needs a person.
type collector struct {
	policy *v1alpha1.RebootPolicy
	plan   *plan.Plan
	now    time.Time
	list   []Item
}

func (a *collector) add(kind Kind, message, command string, nodes ...string) {
	a.because(kind, "", message, command, nodes...)
}

func (a *collector) because(kind Kind, reason v1alpha1.Reason, message, command string, nodes ...string) {
	a.list = append(a.list, Item{Kind: kind, Reason: reason, Nodes: nodes, Message: message, Command: command})
}

// ofPolicy adds what stops the whole policy.
func (a *collector) ofPolicy() {
	name, spec, p := a.policy.Name, &a.policy.Spec, a.plan
	edit := "kubectl edit rbp " + name
	if p.Invalid != nil {
		a.add(Invalid, fmt.Sprintf("policy %s is not in force: %s", name, p.Invalid.Message), edit)
	}
	if p.Halt.Halted {
		a.add(Halted, fmt.Sprintf("policy %s has halted: %s", name, p.Halt.Message),
			fmt.Sprintf(`kubectl reboot resume rbp/%s --halt --reason="what was fixed"`, name))
	}
	if u := spec.UrgentOrDefault().All; u != nil && a.now.Before(u.Until.Time) {
		a.add(Urgent, fmt.Sprintf("policy %s is urgent until %s: %s", name, timing.Instant(u.Until.Time), u.Reason),
			"kubectl patch rbp "+name+` --type merge -p '{"spec":{"urgent":{"all":null}}}'`)
	}
	if spec.PausedAt(a.now) {
		text := "policy " + name + " is paused"
		if spec.Pause != nil && spec.Pause.Reason != "" {
			text += ": " + spec.Pause.Reason
		}
		a.add(Paused, text, "kubectl reboot resume rbp/"+name+" --pause")
	}
	if p.Limit == 0 && p.Counts.RebootRequired > 0 && p.Invalid == nil {
		a.because(Blocked, v1alpha1.ReasonBudgetExhausted, fmt.Sprintf("policy %s grants nothing: maxUnavailable is 0", name), "kubectl edit rbp "+p.LimitOf)
	}
	for _, c := range p.Conflicts {
		a.add(Conflict, c.Message(), "kubectl reboot explain "+slices.Concat(c.Pending, c.Nodes)[0], c.Nodes...)
	}
	for _, other := range slices.Sorted(maps.Keys(p.Withheld)) {
		nodes := p.Withheld[other]
		a.add(Conflict, fmt.Sprintf("policy %s is invalid and keeps %s of policy %s, which has a lower priority: no reboot is granted there",
			other, message.Count(len(nodes), "node", "nodes"), name), "kubectl edit rbp "+other, nodes...)
	}
}

// ofAgents adds the nodes that do not report whether they need a reboot.
func (a *collector) ofAgents() {
	name := a.policy.Name
	status, text := metav1.ConditionTrue, ""
	if c := meta.FindStatusCondition(a.policy.Status.Conditions, v1alpha1.ConditionAgentsReady); c != nil {
		status, text = c.Status, c.Message
	}
	if h := a.plan.Agents; h != nil { // newer than the condition
		status, text = metav1.ConditionStatus(h.Status), h.Message
	}
	switch silent := a.plan.Silent; {
	case status != metav1.ConditionTrue:
		a.add(Agents, fmt.Sprintf("policy %s: %s", name, text), LookAtAgents)
	case len(silent) > 0:
		a.add(Agents, fmt.Sprintf("policy %s: it is unknown whether %s needs a reboot: no agent or update engine responds there",
			name, message.Some(silent)), "kubectl reboot explain "+silent[0], silent...)
	}
}

// ofReboots adds granted reboots that are stuck.
func (a *collector) ofReboots() {
	condition := meta.FindStatusCondition(a.policy.Status.Conditions, v1alpha1.ConditionProgressing)
	if n, text := a.plan.Refused(); n > 0 {
		a.add(WriteRefused, fmt.Sprintf("policy %s: %s", a.policy.Name, text), LookAtAdmission)
	} else if condition != nil && condition.Reason == string(v1alpha1.ReasonNodeWriteRefused) {
		a.add(WriteRefused, fmt.Sprintf("policy %s: %s", a.policy.Name, condition.Message), LookAtAdmission)
	}
	for _, t := range a.plan.UnderWay() {
		node := t.Entry.Node
		switch {
		case t.Action == underway.ReleaseEntry || t.Node == nil:
		case !t.FailedAt.IsZero():
			a.because(Overdue, t.Reason, node+": "+t.Message, "kubectl reboot explain "+node, node)
		case t.HookUnanswered(a.now):
			_, since := t.State()
			a.because(Hook, t.Reason, fmt.Sprintf("%s: hooks have not answered since %s: %s", node, timing.Instant(since), t.Message),
				t.AnswerHook(), node)
		}
	}
}

// ofFailures adds the nodes whose reboots fail.
func (a *collector) ofFailures() {
	byReason := map[v1alpha1.Reason][]plan.Failure{}
	for _, f := range a.plan.Failures {
		byReason[f.Reason] = append(byReason[f.Reason], f)
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		failures := byReason[reason]
		nodes := make([]string, 0, len(failures))
		for _, f := range failures {
			nodes = append(nodes, f.Node)
		}
		for _, f := range failures[:min(len(failures), maxNamed)] {
			text := fmt.Sprintf("%s was not rebooted (%s)", f.Node, reason)
			if f.Message != "" {
				text += ": " + strings.TrimSuffix(f.Message, ".")
			}
			command := "kubectl reboot explain " + f.Node
			if f.RetryAt.After(a.now) {
				text += "; the next attempt may begin " + timing.Instant(f.RetryAt)
				command = "kubectl reboot retry " + f.Node
			}
			a.because(Failed, reason, text, command, f.Node)
		}
		if rest := nodes[min(len(nodes), maxNamed):]; len(rest) > 0 {
			a.because(Failed, reason, fmt.Sprintf("%s also not rebooted (%s): %s", message.Count(len(rest), "node was", "nodes were"), reason, message.Some(rest)),
				"kubectl reboot status "+a.policy.Name+" -o wide", rest...)
		}
	}
}

// ofUnavailable adds the nodes that use up the limit without a reboot while others wait.
func (a *collector) ofUnavailable() {
	own := map[string]bool{} // a node that is down already may be rebooted beyond the limit
	for _, u := range a.plan.Unavailable {
		own[u.Node] = true
	}
	if !slices.ContainsFunc(a.plan.Decisions, func(d plan.Decision) bool { return d.Status == corev1.ConditionFalse && !own[d.Node] }) {
		return
	}
	for _, u := range a.plan.Unavailable {
		since := cmp.Or(u.Since, a.plan.OldestPending)
		if a.now.Sub(since) < slots.Patience {
			continue
		}
		command, text := "kubectl describe node "+u.Node, u.Node+" "+u.Why
		if !u.Since.IsZero() {
			text += " since " + timing.Instant(u.Since)
		}
		if u.Cordoned {
			command = "kubectl uncordon " + u.Node
		}
		if u.Guarded {
			text += ": other control-plane nodes of policy " + a.policy.Name + " wait for it"
		} else {
			text += fmt.Sprintf(" and uses up the limit of policy %s: other nodes wait for it", a.policy.Name)
		}
		a.add(Unavailable, text, command, u.Node)
	}
}

// ofBlocked adds the nodes that wait for a person, unless ofFailures has added them for the same
// reason. Nodes with the same message form one group.
func (a *collector) ofBlocked() {
	type group struct {
		reason v1alpha1.Reason
		nodes  []string
		text   string
	}
	var groups []*group
	known, count, failed := map[string]*group{}, map[v1alpha1.Reason]int{}, map[plan.Failure]bool{}
	for _, f := range a.plan.Failures {
		failed[plan.Failure{Node: f.Node, Reason: f.Reason}] = true
	}
	for _, d := range a.plan.Decisions {
		if d.Then != "" { // it waits for a window, which does not end this
			d.Reason, d.Message = d.Then, d.ThenMessage
		}
		// Control-plane nodes under several policies are a conflict that plan.Conflicts does not
		// hold.
		conflict := d.Reason == v1alpha1.ReasonPolicyConflict && len(a.plan.Conflicts) == 0
		needed := plan.NeedsPerson(d.Reason) || conflict || d.Endless
		if d.Status != corev1.ConditionFalse || !needed || failed[plan.Failure{Node: d.Node, Reason: d.Reason}] {
			continue
		}
		key := string(d.Reason) + "\n" + d.Message
		g := known[key]
		if g == nil && count[d.Reason] >= maxNamed {
			key = string(d.Reason) // the rest of the reason
			g = known[key]
		}
		if g == nil {
			g = &group{reason: d.Reason, text: d.Message}
			if key == string(d.Reason) {
				g.text = "for other causes"
			}
			known[key], groups = g, append(groups, g)
			count[d.Reason]++
		}
		g.nodes = append(g.nodes, d.Node)
	}
	for _, g := range groups {
		a.because(Blocked, g.reason, fmt.Sprintf("%s: %s: %s", message.Some(g.nodes), g.reason, g.text), "kubectl reboot explain "+g.nodes[0], g.nodes...)
	}
}

// ofRun adds what is about the run as a whole.
func (a *collector) ofRun() {
	name := a.policy.Name
	if d := a.plan.Deadlines; d != nil && d.Reason != v1alpha1.ReasonInTime {
		a.add(Deadline, fmt.Sprintf("policy %s: %s", name, d.Message), "kubectl reboot forecast "+name)
	}
	if a.plan.RunWaits != "" {
		text, command := run.SplitMessage(a.plan.RunWaits)
		a.add(RunHooks, fmt.Sprintf("policy %s: %s", name, text), cmp.Or(command, "kubectl get rbp "+name+" -o jsonpath={.status.run.hooks}"))
	}
	if a.policy.DeletionTimestamp != nil {
		a.add(Deleting, fmt.Sprintf("policy %s is being deleted: it stays until its reboots and the hooks of its run have ended", name), "kubectl describe rbp "+name)
	}
}

// ofConditions adds the nodes whose conditions a reboot did not end.
func (a *collector) ofConditions() {
	if nodes := a.plan.Ignored; len(nodes) > 0 {
		a.because(Blocked, v1alpha1.ReasonConditionIgnored, fmt.Sprintf("%s: policy %s ignores a condition of its nodeConditions that lasts: "+
			"a reboot did not end it, or its time cannot be right", message.Some(nodes), a.policy.Name), "kubectl reboot explain "+nodes[0], nodes...)
	}
}
