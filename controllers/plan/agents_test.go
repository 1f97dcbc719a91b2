package plan_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/report"
)

// TestReboots_Agents checks which nodes have a working agent. A report that an agent has left
// behind is not enough.
func TestReboots_Agents(t *testing.T) {
	const grace = 30 * time.Second
	pod := func(ready bool, since time.Duration) report.AgentPod {
		return report.AgentPod{Ready: ready, Since: evening.Add(since)}
	}
	ready, down := pod(true, -time.Hour), pod(false, -time.Hour)
	silent := nodeCondition(v1alpha1.NodeRebootRequired, corev1.ConditionUnknown, -time.Hour)
	pods := func(a, b report.AgentPod) *report.Agents {
		return &report.Agents{Pods: map[string]report.AgentPod{"a": a, "b": b}}
	}
	none := &report.Agents{}
	unread := &report.Agents{Unknown: "pods is forbidden"}
	granted := one(policy("workers", holding(1, entry("a", 1))), needy("a", grant(1, protocol.GrantActive)), newHost("b"))
	cases := map[string]struct {
		situation situation
		agents    *report.Agents
		summary   string
		missing   []string
		reason    v1alpha1.Reason
		next      time.Time
	}{
		"all work":                           {two(), pods(ready, ready), "2/2", nil, v1alpha1.ReasonAgentsReady, time.Time{}},
		"one is not Ready: it has reported":  {two(), pods(ready, down), "1/2", []string{"b"}, v1alpha1.ReasonAgentsMissing, time.Time{}},
		"one has no pod":                     {two(), &report.Agents{Pods: map[string]report.AgentPod{"a": ready}}, "1/2", []string{"b"}, v1alpha1.ReasonAgentsMissing, time.Time{}},
		"no agent pod exists":                {two(), none, "0/2", []string{"a", "b"}, v1alpha1.ReasonAgentsMissing, time.Time{}},
		"one is Ready and has not reported":  {two(silent), pods(ready, ready), "1/2", []string{"b"}, v1alpha1.ReasonAgentsMissing, time.Time{}},
		"one was replaced just now":          {two(), pods(ready, pod(false, 0)), "1/2", nil, v1alpha1.ReasonAgentsReady, evening.Add(grace)},
		"one was replaced, and does not run": {two(), pods(ready, pod(false, -grace)), "1/2", []string{"b"}, v1alpha1.ReasonAgentsMissing, time.Time{}},
		"its clock is a little ahead":        {two(), pods(ready, pod(false, 2*time.Second)), "1/2", nil, v1alpha1.ReasonAgentsReady, evening.Add(2*time.Second + grace)},
		"its clock is ahead":                 {two(), pods(ready, pod(false, time.Hour)), "1/2", []string{"b"}, v1alpha1.ReasonAgentsMissing, time.Time{}},
		"its node has just joined": {
			two(nodeCondition(corev1.NodeReady, corev1.ConditionTrue, -time.Second)), pods(ready, report.AgentPod{}), "1/2", nil,
			v1alpha1.ReasonAgentsReady, evening.Add(grace - time.Second),
		},
		"its node is down":             {two(notReady), pods(ready, down), "1/2", nil, v1alpha1.ReasonAgentsReady, time.Time{}},
		"its node is rebooted":         {granted, pods(down, ready), "1/2", nil, v1alpha1.ReasonAgentsReady, evening.Add(5 * minute)},
		"nobody may read the pods":     {two(), unread, "2/2", nil, v1alpha1.ReasonAgentsUnknown, time.Time{}},
		"pods unread, one node silent": {two(silent), unread, "1/2", []string{"b"}, v1alpha1.ReasonAgentsMissing, time.Time{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.situation.snapshot()
			s.Agents = tc.agents
			p := plan.Of(s)
			same(t, "missing", tc.missing, p.Agents.Nodes)
			same(t, "how many are missing", len(tc.missing), int(p.Agents.Missing))
			if p.Agents.Summary != tc.summary || p.Agents.Reason != tc.reason || p.Agents.Message == "" {
				t.Errorf("got %+v", p.Agents)
			}
			same(t, "next", tc.next, p.Next)
		})
	}
}

// two returns nodes a and b, both up to date unless options change b.
func two(options ...func(*host)) situation {
	return one(policy("workers"), newHost("a"), newHost("b", options...))
}

// TestReboots_AgentsNotReadYet checks that the status stays as it is until the agents' pods have
// been read.
func TestReboots_AgentsNotReadYet(t *testing.T) {
	if got := two().plan().Agents; got != nil {
		t.Errorf("got %+v", got)
	}
}
