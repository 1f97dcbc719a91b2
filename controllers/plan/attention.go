package plan

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
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// AttentionKind groups what may need a person. It is also the label kind of a metric.
type AttentionKind string

// The kinds of attention, most important first.
const (
	AttentionInvalid      AttentionKind = "Invalid"
	AttentionHalted       AttentionKind = "Halted"
	AttentionUrgent       AttentionKind = "Urgent"
	AttentionPaused       AttentionKind = "Paused"
	AttentionConflict     AttentionKind = "Conflict"
	AttentionAgents       AttentionKind = "AgentsNeeded"
	AttentionWriteRefused AttentionKind = "WriteRefused"
	AttentionOverdue      AttentionKind = "Overdue"
	AttentionFailed       AttentionKind = "Failed"
	AttentionUnavailable  AttentionKind = "Unavailable"
	AttentionHook         AttentionKind = "HookUnanswered"
	AttentionBlocked      AttentionKind = "Blocked"
	AttentionDeadline     AttentionKind = "DeadlineNear"
	AttentionRunHooks     AttentionKind = "RunHooks"
	AttentionDeleting     AttentionKind = "Deleting"
)

// AttentionKinds lists every kind.
var AttentionKinds = []AttentionKind{
	AttentionInvalid, AttentionHalted, AttentionUrgent, AttentionPaused, AttentionConflict, AttentionAgents, AttentionWriteRefused, AttentionOverdue,
	AttentionFailed, AttentionUnavailable, AttentionHook, AttentionBlocked, AttentionDeadline, AttentionRunHooks, AttentionDeleting,
}

// Attention is something that does not go on by itself, with a sentence for a person and a command
// that helps.
type Attention struct {
	Kind AttentionKind
	// Reason says why nodes fail or wait. It is empty if the kind already says it.
	Reason v1alpha1.Reason
	// Nodes are the nodes it is about, empty if it is about the policy.
	Nodes   []string
	Message string
	Command string
}

// Chosen reports whether a person has asked for this state. Nobody has to act, but everybody should
// know.
func (a Attention) Chosen() bool {
	return a.Kind == AttentionUrgent || a.Kind == AttentionPaused || a.Kind == AttentionDeleting
}

const (
	// HookPatience is the time that a hook has to answer before a person is told.
	HookPatience = 5 * time.Minute
	// unavailablePatience is the time for which an unavailable node may use up the limit before a
	// person is told.
	unavailablePatience = time.Hour
	// maxNamed is the number of nodes with the same trouble that get a sentence each.
	maxNamed = 3
)

// Commands that show more about what needs a person.
const (
	// LookAtAgents shows whether the agents run.
	LookAtAgents = "kubectl get daemonsets,pods -A -l app.kubernetes.io/name=reboot-operator -o wide"
	// LookAtAdmission lists most of what may refuse a write.
	LookAtAdmission = "kubectl get validatingadmissionpolicies,validatingwebhookconfigurations"
)

// Failure is a failed attempt to reboot a node that still needs its reboot.
type Failure struct {
	Node   string
	Reason v1alpha1.Reason
	// Message says what failed.
	Message string
	// RetryAt is the time when the node may be tried again.
	RetryAt time.Time
}

// Attention returns what needs a person, most important first. Status, dashboard, doctor and
// metrics all show this result, so that they agree.
func (p *Plan) Attention(policy *v1alpha1.RebootPolicy, now time.Time) []Attention {
	a := attention{policy: policy, plan: p, now: now}
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

// attention collects what needs a person.
type attention struct {
	policy *v1alpha1.RebootPolicy
	plan   *Plan
	now    time.Time
	list   []Attention
}

func (a *attention) add(kind AttentionKind, message, command string, nodes ...string) {
	a.because(kind, "", message, command, nodes...)
}

func (a *attention) because(kind AttentionKind, reason v1alpha1.Reason, message, command string, nodes ...string) {
	a.list = append(a.list, Attention{Kind: kind, Reason: reason, Nodes: nodes, Message: message, Command: command})
}

// ofPolicy adds what stops the whole policy.
func (a *attention) ofPolicy() {
	name, spec, p := a.policy.Name, &a.policy.Spec, a.plan
	edit := "kubectl edit rbp " + name
	if p.Invalid != "" {
		a.add(AttentionInvalid, fmt.Sprintf("policy %s cannot be acted on: %s", name, p.Invalid), edit)
	}
	if p.Unshared != "" {
		a.add(AttentionInvalid, fmt.Sprintf("policy %s cannot be acted on: it %s", name, p.Unshared), edit)
	}
	if p.Halt.Halted {
		a.add(AttentionHalted, fmt.Sprintf("policy %s has halted: %s", name, p.Halt.Message),
			fmt.Sprintf(`kubectl reboot resume rbp/%s --halt --reason="what was fixed"`, name))
	}
	if u := spec.UrgentOrDefault().All; u != nil && a.now.Before(u.Until.Time) {
		a.add(AttentionUrgent, fmt.Sprintf("policy %s is urgent until %s: %s", name, timing.Instant(u.Until.Time), u.Reason),
			"kubectl patch rbp "+name+` --type merge -p '{"spec":{"urgent":{"all":null}}}'`)
	}
	if spec.PausedAt(a.now) {
		text := "policy " + name + " is paused"
		if spec.Pause != nil && spec.Pause.Reason != "" {
			text += ": " + spec.Pause.Reason
		}
		a.add(AttentionPaused, text, "kubectl reboot resume rbp/"+name+" --pause")
	}
	if len(p.Conflicts) > 0 {
		a.add(AttentionConflict, fmt.Sprintf("policies %s select %s with the same priority: no reboot is granted there",
			strings.Join(p.Conflicts[p.Contested], ", "), message.Count(len(p.Conflicts), "node", "nodes")),
			"kubectl reboot explain "+p.Contested, slices.Sorted(maps.Keys(p.Conflicts))...)
	}
	for _, other := range slices.Sorted(maps.Keys(p.Withheld)) {
		nodes := p.Withheld[other]
		a.add(AttentionConflict, fmt.Sprintf("policy %s is invalid and keeps %s of policy %s, which has a lower priority: no reboot is granted there",
			other, message.Count(len(nodes), "node", "nodes"), name), "kubectl edit rbp "+other, nodes...)
	}
}

// ofAgents adds the nodes that do not report whether they need a reboot.
func (a *attention) ofAgents() {
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
		a.add(AttentionAgents, fmt.Sprintf("policy %s: %s", name, text), LookAtAgents)
	case len(silent) > 0:
		a.add(AttentionAgents, fmt.Sprintf("policy %s: whether %s needs a reboot is not known: no agent or no update engine answers there",
			name, someOf(silent)), "kubectl reboot explain "+silent[0], silent...)
	}
}

// ofReboots adds granted reboots that are stuck.
func (a *attention) ofReboots() {
	condition := meta.FindStatusCondition(a.policy.Status.Conditions, v1alpha1.ConditionProgressing)
	if n, text := a.plan.Refused(); n > 0 {
		a.add(AttentionWriteRefused, fmt.Sprintf("policy %s: %s", a.policy.Name, text), LookAtAdmission)
	} else if condition != nil && condition.Reason == string(v1alpha1.ReasonNodeWriteRefused) {
		a.add(AttentionWriteRefused, fmt.Sprintf("policy %s: %s", a.policy.Name, condition.Message), LookAtAdmission)
	}
	for _, t := range a.plan.UnderWay() {
		node := t.Entry.Node
		switch {
		case t.Action == ReleaseEntry || t.Node == nil:
		case !t.FailedAt.IsZero():
			a.because(AttentionOverdue, t.Reason, node+": "+t.Message, "kubectl reboot explain "+node, node)
		case t.HookUnanswered(a.now):
			_, since := t.State()
			a.because(AttentionHook, t.Reason, fmt.Sprintf("%s: hooks have not answered since %s: %s", node, timing.Instant(since), t.Message),
				t.AnswerHook(), node)
		}
	}
}

// ofFailures adds the nodes whose reboots fail.
func (a *attention) ofFailures() {
	byReason := map[v1alpha1.Reason][]Failure{}
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
			a.because(AttentionFailed, reason, text, command, f.Node)
		}
		if rest := nodes[min(len(nodes), maxNamed):]; len(rest) > 0 {
			a.because(AttentionFailed, reason, fmt.Sprintf("%s also not rebooted (%s): %s", message.Count(len(rest), "node was", "nodes were"), reason, someOf(rest)),
				"kubectl reboot status "+a.policy.Name+" -o wide", rest...)
		}
	}
}

// ofUnavailable adds the nodes that use up the limit without a reboot while others wait.
func (a *attention) ofUnavailable() {
	own := map[string]bool{} // a node that is down already may be rebooted beyond the limit
	for _, u := range a.plan.Unavailable {
		own[u.Node] = true
	}
	if !slices.ContainsFunc(a.plan.Decisions, func(d Decision) bool { return d.Status == corev1.ConditionFalse && !own[d.Node] }) {
		return
	}
	for _, u := range a.plan.Unavailable {
		since := cmp.Or(u.Since, a.plan.OldestPending)
		if a.now.Sub(since) < unavailablePatience {
			continue
		}
		command, text := "kubectl describe node "+u.Node, u.Node+" "+u.Why
		if !u.Since.IsZero() {
			text += " since " + timing.Instant(u.Since)
		}
		if u.Cordoned {
			command = "kubectl uncordon " + u.Node
		}
		a.add(AttentionUnavailable, fmt.Sprintf("%s and uses up the limit of policy %s: other nodes wait for it", text, a.policy.Name), command, u.Node)
	}
}

// needPerson are the reasons that only a person, or a change outside the operator, can end. Reasons
// that concern the whole policy have their own kind.
var needPerson = map[v1alpha1.Reason]bool{
	v1alpha1.ReasonUndrainablePod: true, v1alpha1.ReasonUpdateNotApplied: true, v1alpha1.ReasonCoordinatorConflict: true,
	v1alpha1.ReasonRecordUnreadable: true, v1alpha1.ReasonGateUnreachable: true, v1alpha1.ReasonNodeUnavailable: true,
}

// ofBlocked adds the nodes that wait for a person. Nodes with the same message form one group.
func (a *attention) ofBlocked() {
	type group struct {
		reason v1alpha1.Reason
		nodes  []string
		text   string
	}
	var groups []*group
	known, count := map[string]*group{}, map[v1alpha1.Reason]int{}
	for _, d := range a.plan.Decisions {
		if d.Then != "" { // it waits for a window, which does not end this
			d.Reason, d.Message = d.Then, d.ThenMessage
		}
		// Control-plane nodes under several policies are a conflict that plan.Conflicts does not
		// hold.
		conflict := d.Reason == v1alpha1.ReasonPolicyConflict && len(a.plan.Conflicts) == 0
		if d.Status != corev1.ConditionFalse || !needPerson[d.Reason] && !conflict {
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
		a.because(AttentionBlocked, g.reason, fmt.Sprintf("%s: %s: %s", someOf(g.nodes), g.reason, g.text), "kubectl reboot explain "+g.nodes[0], g.nodes...)
	}
}

// ofRun adds what is about the run as a whole.
func (a *attention) ofRun() {
	name := a.policy.Name
	if d := a.plan.Deadlines; d != nil && d.Reason != v1alpha1.ReasonInTime {
		a.add(AttentionDeadline, fmt.Sprintf("policy %s: %s", name, d.Message), "kubectl reboot forecast "+name)
	}
	if a.plan.RunWaits != "" {
		text, command := AnswerRunHook(a.plan.RunWaits)
		a.add(AttentionRunHooks, fmt.Sprintf("policy %s: %s", name, text), cmp.Or(command, "kubectl get rbp "+name+" -o jsonpath={.status.run.hooks}"))
	}
	if a.policy.DeletionTimestamp != nil {
		a.add(AttentionDeleting, fmt.Sprintf("policy %s is being deleted: it stays until its grants and the hooks of its run are over", name), "kubectl describe rbp "+name)
	}
}

// silentNodes returns the nodes that should have reported by now whether they need a reboot, by
// name.
func silentNodes(f *fleet) []string {
	var names []string
	for _, n := range f.selected {
		if n.Reports() || n.Windows || !n.Ready || n.Deleting || f.held(n) || f.Now.Sub(n.ReadySince) < agentGrace {
			continue
		}
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return names
}

// contested returns a node of the conflicts, if possible one that needs a reboot.
func contested(f *fleet) string {
	first := ""
	for _, name := range slices.Sorted(maps.Keys(f.conflicts)) {
		if f.byName[name].NeedsReboot() {
			return name
		}
		first = cmp.Or(first, name)
	}
	return first
}
