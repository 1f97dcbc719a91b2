package plan_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// rebootStep is the next step of a reboot, for comparison.
type rebootStep struct {
	Action   underway.Action
	Reason   v1alpha1.Reason
	Message  string
	Stage    v1alpha1.HookStage
	FailedAt time.Time
	Until    time.Time
	// DrainUntil is the time when drain.timeout ends the drain.
	DrainUntil time.Time
}

// rebootSeq is the number of the reboot in these tables, of policy workers and node worker-1.
const rebootSeq = 5

// These are steps that many cases expect.
var (
	publish = rebootStep{Action: underway.PublishGrant, Reason: v1alpha1.ReasonGranted}
	finish  = rebootStep{Action: underway.FinishGrant, Reason: v1alpha1.ReasonGranted, Message: "back in service"}
)

func cancelsGrant(reason v1alpha1.Reason, message string) rebootStep {
	return rebootStep{Action: underway.CancelGrant, Reason: reason, Message: message}
}

func released(reason v1alpha1.Reason, message string) rebootStep {
	return rebootStep{Action: underway.ReleaseEntry, Reason: reason, Message: message}
}

// waits returns the step of a reboot that goes on until a time counted from the evening, and fails
// the step of one that has failed since then.
func waits(message string, until time.Duration) rebootStep {
	return rebootStep{Action: underway.Wait, Reason: v1alpha1.ReasonGranted, Message: message, Until: instantAfter(until)}
}

func fails(reason v1alpha1.Reason, since time.Duration, message string) rebootStep {
	return rebootStep{Action: underway.Wait, Reason: reason, Message: message, FailedAt: instantAfter(since)}
}

// drains sets the end of the drain. The manager waits ten minutes longer.
func (s rebootStep) drains(until time.Duration) rebootStep {
	s.DrainUntil = instantAfter(until - 10*minute)
	return s
}

type rebootCase struct {
	node    []func(*host)
	policy  []func(*v1alpha1.RebootPolicy)
	now     time.Duration
	window  *window.State
	needs   bool
	gone    bool
	madeFor types.UID // the Node that the ledger names
	another *v1alpha1.RebootPolicy
	want    rebootStep
}

func (tc rebootCase) reboot(t *testing.T) underway.Reboot {
	t.Helper()
	machine := newHost
	if tc.needs {
		machine = needy
	}
	e := entry("worker-1", rebootSeq)
	e.NodeUID = tc.madeFor
	s := one(policy("workers", append(tc.policy, holding(rebootSeq, e))...))
	s.now, s.window = evening.Add(tc.now), tc.window
	if !tc.gone {
		s.hosts = []*host{machine("worker-1", tc.node...)}
	}
	if tc.another != nil {
		s.policies = append(s.policies, tc.another)
	}
	p := s.plan()
	if len(p.Reboots) != 1 {
		t.Fatalf("reboots: %+v", p.Reboots)
	}
	return p.Reboots[0]
}

// uid sets the UID of the Node.
func uid(of types.UID) func(*host) { return func(h *host) { h.node.UID = of } }

func testReboots(t *testing.T, cases map[string]rebootCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := tc.reboot(t)
			same(t, "reboot", tc.want, rebootStep{f.Action, f.Reason, f.Message, f.Stage, f.FailedAt, f.Until, f.DrainUntil})
		})
	}
}

// TestReboots_BeforeTheStart checks that every check still applies until the agent begins.
func TestReboots_BeforeTheStart(t *testing.T) {
	active, unreadable := grant(rebootSeq, protocol.GrantActive), annotated(v1alpha1.AnnotationProgress, "?")
	// shown returns a node that shows its grant.
	shown := func(want rebootStep, mods ...func(*host)) rebootCase {
		return rebootCase{needs: true, node: append(options(active), mods...), want: want}
	}
	under := func(option func(*v1alpha1.RebootPolicy), want rebootStep) rebootCase {
		return rebootCase{needs: true, node: options(active), policy: options(option), want: want}
	}
	notBegun := waits("granted; the agent has not begun yet", 5*minute)
	noNeed := cancelsGrant(v1alpha1.ReasonCancelled, "the node no longer needs a reboot")
	ungoverned := cancelsGrant(v1alpha1.ReasonNoPolicy, "policy workers does not govern the node any more")
	testReboots(t, map[string]rebootCase{
		"the node does not know of it yet":                                     {needs: true, want: publish},
		"it is the Node that the ledger names":                                 {needs: true, node: options(uid("1")), madeFor: "1", want: publish},
		"the node shows an older grant":                                        {needs: true, node: options(grant(4, protocol.GrantFinished)), want: publish},
		"the agent has five minutes":                                           {needs: true, node: options(active), now: 299 * time.Second, want: notBegun},
		"the need is withdrawn (behaviour 3)":                                  {node: options(active), want: noNeed},
		"the need is withdrawn before the grant is published":                  {want: noNeed},
		"another policy governs the node":                                      {needs: true, node: options(active), another: policy("better", priority(1)), want: ungoverned},
		"no policy governs the node":                                           under(selects("pool", "db"), ungoverned),
		"the policy is being deleted":                                          under(deleted, cancelsGrant(v1alpha1.ReasonCancelled, "policy workers is being deleted")),
		"the policy has mode DryRun now":                                       under(dryRun, cancelsGrant(v1alpha1.ReasonDryRun, "policy workers is in mode DryRun")),
		"the policy is paused (behaviour 22)":                                  under(paused(nil, ""), cancelsGrant(v1alpha1.ReasonPaused, "policy workers is paused")),
		"others have used up the limit since, which does not cancel the grant": shown(notBegun, cordoned),
		"the agent is silent": {
			needs: true, node: options(active), now: 5 * minute,
			want: cancelsGrant(v1alpha1.ReasonAgentSilent, "the agent did not act on its grant within 5m0s; check the agent's pod on this node"),
		},
		"the node was rebooted by hand (behaviour 50)": shown(
			cancelsGrant(v1alpha1.ReasonCancelled, "the node was rebooted by somebody else after the grant"), bootID("worker-1-boot-2")),
		"another policy of the same priority selects the node": {
			needs: true, node: options(active), another: policy("rivals"),
			want: cancelsGrant(v1alpha1.ReasonPolicyConflict, "policies rivals, workers select the node with the same priority"),
		},
		"the node is paused (behaviour 23)": shown(
			cancelsGrant(v1alpha1.ReasonNodePaused, "the node is paused; to resume: kubectl annotate node worker-1 reboot-operator.io/paused-"),
			annotated(v1alpha1.AnnotationPaused, "true")),
		"the window has closed (behaviour 35)": {
			needs: true, node: options(active), window: &window.State{},
			want: cancelsGrant(v1alpha1.ReasonWindowClosed, "no window is open; none opens within a year"),
		},
		"the window is too short by now, and was long enough": {
			needs: true, node: options(active), window: &window.State{Open: true, ClosesAt: evening.Add(minute)}, want: notBegun,
		},
		"the node is no longer Ready": shown(
			cancelsGrant(v1alpha1.ReasonNodeUnavailable, "the node is not Ready, so a reboot could not be confirmed; repair the node first"), notReady),
		"the agent sees another boot than the kubelet": shown(
			cancelsGrant(v1alpha1.ReasonNodeUnavailable, `the agent's last report is for boot "other", but the kubelet reports boot "worker-1-boot-1"; the reboot waits `+
				"until they agree; if they never do, set --boot-id-file of the agent"), annotated(v1alpha1.AnnotationEngines, `{"bootID":"other"}`)),
		"the agent blocks it (behaviour 46)": shown(
			cancelsGrant(v1alpha1.ReasonInhibited, "dpkg"), agentBlocking(`{"reason":"Inhibited","message":"dpkg"}`)),
		"locksmithd has started since (behaviour 57)": shown(
			cancelsGrant(v1alpha1.ReasonCoordinatorConflict, "locksmithd"), agentBlocking(`{"reason":"CoordinatorConflict","message":"locksmithd"}`)),
		"the node is in the middle of another policy's grant": {
			needs: true, node: options(grant(3, protocol.GrantActive, givenBy("old")), progress(3, protocol.PhaseRebooting)),
			want: rebootStep{Action: underway.Wait, Reason: v1alpha1.ReasonGranted, Message: "waits until grant 3 of policy old is over"},
		},
		"the progress cannot be read, and nobody has repaired it in time": {
			needs: true, node: options(active, unreadable), now: time.Hour,
			want: fails(v1alpha1.ReasonRebootTimedOut, time.Hour, "the progress of the reboot granted at Mon 2026-06-01 22:00:00 UTC cannot be read, and was "+
				"not repaired in time: annotation reboot-operator.io/progress: invalid character '?' looking for beginning of value; the node keeps its slot. "+
				"Check the machine and its agent; once you are sure that the machine is off, delete the Node to free the slot"),
		},
		"the agent is silent, and the grant on the Node is dated 2099": {
			needs: true, node: options(grant(rebootSeq, protocol.GrantActive, grantedAt(73*365*24*time.Hour))),
			want: cancelsGrant(v1alpha1.ReasonRecordUnreadable, "the grant is dated Thu 2099-05-14 22:00:00 UTC, more than an hour in the future"),
		},
		"the progress cannot be read, so the agent may be at any step": {
			needs: true, node: options(active, unreadable), now: 59 * minute,
			want: rebootStep{
				Action: underway.Wait, Reason: v1alpha1.ReasonRecordUnreadable, Until: instantAfter(time.Hour),
				Message: "annotation reboot-operator.io/progress: invalid character '?' looking for beginning of value; the node keeps its slot until the agent repairs the record",
			},
		},
		"the progress cannot be read, and the node does not show it yet": {needs: true, node: options(unreadable), want: publish},
	})
}

// TestReboots_CrowdedOut checks that a grant that its agent has not seen is cancelled if other
// nodes have gone down in the meantime. Hooks may take hours.
func TestReboots_CrowdedOut(t *testing.T) {
	cp := label(record.ControlPlaneLabels[0], "")
	full := "waiting for its turn: at most 1 of the nodes may be unavailable at once; worker-2 "
	active := grant(rebootSeq, protocol.GrantActive)
	cases := map[string]struct {
		node   *host
		others []*host
		policy []func(*v1alpha1.RebootPolicy)
		want   rebootStep
	}{
		"another node is not Ready":             {needy("worker-1"), []*host{newHost("worker-2", notReady)}, nil, cancelsGrant(v1alpha1.ReasonBudgetExhausted, full+"is not Ready")},
		"another node is cordoned":              {needy("worker-1"), []*host{newHost("worker-2", cordoned)}, nil, cancelsGrant(v1alpha1.ReasonBudgetExhausted, full+"is cordoned")},
		"another node is available":             {needy("worker-1"), []*host{newHost("worker-2")}, nil, publish},
		"there is room for both":                {needy("worker-1"), []*host{newHost("worker-2", notReady)}, options(atMost("2")), publish},
		"the limit alone is lower than it was":  {needy("worker-1"), nil, options(atMost("0")), publish},
		"it is cordoned itself":                 {needy("worker-1", cordoned), []*host{newHost("worker-2", notReady)}, nil, publish},
		"its agent knows the grant":             {needy("worker-1", active), []*host{newHost("worker-2", notReady)}, nil, waits("granted; the agent has not begun yet", 5*minute)},
		"it is rebooting, and has lost a grant": {newHost("worker-1", progress(rebootSeq, protocol.PhaseRebooting)), []*host{newHost("worker-2", notReady)}, nil, rebootStep{Action: underway.PublishGrant, Reason: v1alpha1.ReasonGranted, Message: "rebooting; the grant is missing"}},
		"another control-plane node is not Ready": {
			needy("worker-1", cp),
			[]*host{newHost("worker-2", cp, notReady)},
			options(atMost("9")),
			cancelsGrant(v1alpha1.ReasonControlPlaneGuard, "control-plane node worker-2 is not Ready"),
		},
		"another control-plane node is cordoned": {needy("worker-1", cp), []*host{newHost("worker-2", cp, cordoned)}, options(atMost("9")), publish},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := entry("worker-1", rebootSeq)
			s := one(policy("workers", append(tc.policy, holding(rebootSeq, e))...), append([]*host{tc.node}, tc.others...)...)
			p := s.plan()
			got := p.Reboots[0]
			same(t, "reboot", tc.want, rebootStep{got.Action, got.Reason, got.Message, got.Stage, got.FailedAt, got.Until, got.DrainUntil})
			same(t, "the action by a newer reading of the node", tc.want.Action, p.Again(s.snapshot(), got.Node, e).Action)
		})
	}
}

// TestReboots_CrowdedOutOneForEach checks that only the new grants above the limit are cancelled, the
// last ones first.
func TestReboots_CrowdedOutOneForEach(t *testing.T) {
	grants := holding(3, entry("a", 1), entry("b", 2), entry("c", 3))
	for name, tc := range map[string]struct {
		down []*host
		want []underway.Action
	}{
		"none is down": {nil, []underway.Action{underway.PublishGrant, underway.PublishGrant, underway.PublishGrant}},
		"one is down":  {hosts(newHost, "x", notReady), []underway.Action{underway.PublishGrant, underway.PublishGrant, underway.CancelGrant}},
		"two are down": {hosts(newHost, "x y", notReady), []underway.Action{underway.PublishGrant, underway.CancelGrant, underway.CancelGrant}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []underway.Action
			for _, r := range one(policy("workers", atMost("3"), grants), append(hosts(needy, "a b c"), tc.down...)...).plan().Reboots {
				got = append(got, r.Action)
			}
			same(t, "actions", tc.want, got)
		})
	}
}

// TestReboots_UnderWay checks that a drain that has begun is finished, and that only a new boot ID
// ends a reboot.
func TestReboots_UnderWay(t *testing.T) {
	active := grant(rebootSeq, protocol.GrantActive)
	drains := func(mods ...func(*host)) []func(*host) {
		return append(options(active, progress(rebootSeq, protocol.PhaseDraining)), mods...)
	}
	reboots := func(mods ...func(*host)) []func(*host) {
		return append(options(active, progress(rebootSeq, protocol.PhaseRebooting)), mods...)
	}
	// drainsSince and rebootsSince set when the node entered that phase, by its own clock, counted
	// from the evening.
	drainsSince := func(at time.Duration) func(*host) { return progress(rebootSeq, protocol.PhaseDraining, phaseAt(at)) }
	rebootsSince := func(at time.Duration) func(*host) { return progress(rebootSeq, protocol.PhaseRebooting, phaseAt(at)) }
	draining := func(until time.Duration) rebootStep { return waits("draining", until).drains(until) }
	rebooting := func(until time.Duration) rebootStep { return waits("rebooting", until) }
	booted := waits("booted; waiting for the node to be Ready and for its agent", 30*minute)
	settling := func(since string, until time.Duration) rebootStep {
		return waits("back since Mon 2026-06-01 "+since+" UTC, settling until Mon 2026-06-01 "+instantAfter(until).Format(time.TimeOnly)+" UTC", until)
	}
	hangs := func(began string, since time.Duration) rebootStep {
		return fails(v1alpha1.ReasonDrainTimedOut, since, "the drain began at Mon 2026-06-01 "+began+" UTC and should have ended within 20m0s; "+
			"the node keeps its slot until the agent answers. Check the agent's pod on this node").drains(since)
	}
	lost := func(sent string, since time.Duration) rebootStep {
		return fails(v1alpha1.ReasonRebootTimedOut, since, "the node was sent to reboot at Mon 2026-06-01 "+sent+" UTC and was not back within 30m0s; "+
			"it keeps its slot. Check the machine; once you are sure it is off, delete the Node to free the slot")
	}
	timeouts := func(p *v1alpha1.RebootPolicy) {
		p.Spec.Drain = &v1alpha1.Drain{Timeout: &v1alpha1.Duration{Duration: time.Hour}}
		p.Spec.Reboot = &v1alpha1.Reboot{Timeout: &v1alpha1.Duration{Duration: 2 * time.Hour}, Settle: &v1alpha1.Duration{}}
	}
	const years = 73 * 365 * 24 * time.Hour
	noted := rebootStep{
		Action: underway.BeginHooks, Reason: v1alpha1.ReasonGranted, Stage: v1alpha1.HooksAfter, Message: "back, but its clock is wrong: settling begins",
	}
	notReported := notReportedBack(0)
	newBoot, settles := bootID("worker-1-boot-2"), phase(rebootSeq, v1alpha1.HooksAfter, 9*minute)
	const cni = "node.cilium.io/agent-not-ready"
	// takesPods sets what the node has recorded about a startup taint.
	takesPods := func(takes bool) func(*host) {
		return phase(rebootSeq, v1alpha1.HooksAfter, 9*minute, func(h *protocol.HookPhase) { h.Hooks, h.TakesPods = nil, &takes })
	}
	startsUp := func(mods ...func(*host)) []func(*host) {
		return append(reboots(rebooted(9*minute, 9*minute), tainted(cni, corev1.TaintEffectNoSchedule)), mods...)
	}
	starting := "back, but taint " + cni + ":NoSchedule has kept pods off the node since the reboot; settling begins once it is gone"
	notes := func(message string) rebootStep {
		return rebootStep{Action: underway.NoteTaint, Reason: v1alpha1.ReasonGranted, Message: message}
	}
	hadTaint := grant(rebootSeq, protocol.GrantActive, func(g *protocol.Grant) { g.Taints = []string{cni + ":NoSchedule"} })
	testReboots(t, map[string]rebootCase{
		"a startup taint: noted first":                        {node: startsUp(cordoned), now: 20 * minute, want: notes(starting)},
		"a startup taint that is noted":                       {node: startsUp(cordoned, takesPods(false)), now: 20 * minute, want: waits(starting, 39*minute)},
		"a startup taint that is gone: noted, too":            {node: reboots(rebooted(0, 0), cordoned, takesPods(false)), now: 20 * minute, want: notes("back; settling begins")},
		"a startup taint that was gone: settles from then on": {node: reboots(rebooted(0, 0), cordoned, takesPods(true)), now: 9 * minute, want: settling("22:09:00", 10*minute)},
		"a startup taint is back":                             {node: startsUp(cordoned, takesPods(true)), now: 20 * minute, want: notes(starting)},
		"a taint that the node had before":                    {node: startsUp(cordoned, hadTaint), now: 20 * minute, want: finish},
		"a startup taint, and somebody uncordoned the node":   {node: startsUp(), now: 20 * minute, want: finish},
		"a taint that only prefers other nodes":               {node: reboots(rebooted(0, 0), cordoned, tainted(cni, corev1.TaintEffectPreferNoSchedule)), now: 20 * minute, want: finish},
		"the taint of the cordon, and of this operator":       {node: reboots(rebooted(0, 0), cordoned, tainted(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule), podsOff), now: 20 * minute, want: finish},
		"a taint that a running hook has set": {
			node: startsUp(cordoned, phase(rebootSeq, v1alpha1.HooksAfter, 10*minute)), policy: options(hooked("example.com/a")), now: 20 * minute,
			want: rebootStep{
				Action: underway.Wait, Reason: v1alpha1.ReasonWaitingForHook, Until: instantAfter(70 * minute),
				Message: `waiting for annotations to be "true" by Mon 2026-06-01 23:10:00 UTC: example.com/a`,
			},
		},
		"a taint that stays after the hooks": {
			node:   startsUp(cordoned, phase(rebootSeq, v1alpha1.HooksAfter, 10*minute), annotated("example.com/a", "true")),
			policy: options(hooked("example.com/a")), now: 20 * minute, want: notes(starting),
		},
		"a startup taint that stays: reported, and the slot is kept": {
			node: startsUp(cordoned, takesPods(false)), now: 40 * minute, want: fails(v1alpha1.ReasonStartupTaint, 39*minute, "the node is Ready, but taint "+cni+
				":NoSchedule has kept pods off it since the reboot, for more than 30m0s; it keeps its slot. Check what should remove the taint; if it is meant to stay, "+
				"run: kubectl uncordon worker-1"),
		},

		"draining": {node: drains(), want: draining(30 * minute)},
		"draining while the window closes (behaviour 36)":                   {node: drains(), window: &window.State{}, want: draining(30 * minute)},
		"draining while the policy is paused (behaviour 22)":                {node: drains(), policy: options(paused(nil, "")), want: draining(30 * minute)},
		"draining while the node is paused":                                 {node: drains(annotated(v1alpha1.AnnotationPaused, "true")), want: draining(30 * minute)},
		"draining while another policy governs the node":                    {node: drains(), another: policy("better", priority(1)), want: draining(30 * minute)},
		"draining, and rebooted by hand: the agent will report it":          {node: drains(newBoot), want: draining(30 * minute)},
		"draining under a grant that somebody removed":                      {node: drains()[1:], want: draining(30 * minute)},
		"draining too long: reported, and the slot is kept (behaviour 26)":  {node: drains(), now: 30 * minute, want: hangs("22:00:00", 30*minute)},
		"draining, and its clock is a little behind":                        {node: options(active, drainsSince(-5*minute)), now: minute, want: draining(25 * minute)},
		"draining, and its clock is a day behind: it began after its grant": {node: options(active, drainsSince(-24*time.Hour)), now: minute, want: draining(35 * minute)},
		"draining under a grant that somebody removed, and its clock is a day behind: it began after its entry": {
			node: options(drainsSince(-24 * time.Hour)), now: minute, want: draining(35 * minute),
		},
		"draining with drain.timeout set": {node: drains(), policy: options(timeouts), now: 69 * minute, want: draining(70 * minute)},
		"cordoned, in the lead time: drain.timeout counts from its end": {
			node: drains(), policy: options(leads(2 * minute)), now: minute,
			want: waits("cordoned; pods are evicted from Mon 2026-06-01 22:02:00 UTC on", 32*minute).drains(32 * minute),
		},
		"draining, by a clock in the year 2099":                                     {node: options(active, drainsSince(years)), now: 35 * minute, want: hangs("22:05:00", 35*minute)},
		"draining since three hours ahead by a wrong clock, and that time has come": {node: options(active, drainsSince(180*minute)), now: 181 * minute, want: hangs("22:05:00", 35*minute)},
		"draining late, after an outage of half an hour":                            {node: options(active, drainsSince(30*minute)), now: 40 * minute, want: draining(time.Hour)},

		"rebooting, and the need is gone (behaviour 19)":                       {node: reboots(notReady), want: rebooting(30 * minute)},
		"rebooting, and still Ready (behaviour 63)":                            {node: reboots(), now: 29 * minute, want: rebooting(30 * minute)},
		"rebooting, and the kubelet reports no boot ID":                        {node: reboots(bootID("")), want: rebooting(30 * minute)},
		"up, and not Ready (behaviour 49)":                                     {node: reboots(newBoot, notReady), want: booted},
		"up, and the agent has not reported (behaviour 48)":                    {node: reboots(newBoot, notReported), want: booted},
		"not back in time: reported, and the slot is kept (behaviours 26, 47)": {node: reboots(notReady), now: 30 * minute, want: lost("22:00:00", 30*minute)},
		"never went down, Ready on the same boot (behaviour 47)": {node: reboots(), now: 30 * minute, want: fails(v1alpha1.ReasonRebootTimedOut, 30*minute,
			"the node was sent to reboot at Mon 2026-06-01 22:00:00 UTC and is still Ready on the previous boot after 30m0s; "+
				"it keeps its slot. Event RebootRefused of the node says what blocks the reboot; fix that, or reboot the host by hand")},
		"up in time, and its agent does not report": {node: reboots(newBoot, notReported), now: 30 * minute, want: fails(v1alpha1.ReasonAgentSilent, 30*minute,
			"the node was sent to reboot at Mon 2026-06-01 22:00:00 UTC and is Ready again, but its agent has not reported within 30m0s; "+
				"it keeps its slot until then. Check the agent's pod on this node")},
		"rebooting, and its clock is a day behind: it may have drained for the whole drain.timeout": {
			node: options(active, rebootsSince(-24*time.Hour), notReady), now: minute, want: rebooting(time.Hour),
		},
		"not back in time by a clock that is a day behind": {
			node: options(active, rebootsSince(-24*time.Hour), notReady), now: time.Hour, want: lost("22:30:00", time.Hour),
		},
		"rebooting, by a clock in the year 2099": {node: options(active, rebootsSince(years), notReady), now: time.Hour, want: lost("22:30:00", time.Hour)},
		"rebooting after a drain that was allowed to take longer when it began": {
			node: options(active, rebootsSince(110*minute), notReady), now: 111 * minute, want: rebooting(140 * minute),
		},
		"not back in time after a drain that was allowed to take longer": {
			node: options(active, rebootsSince(110*minute), notReady), now: 3 * time.Hour, want: lost("23:50:00", 140*minute),
		},
		"back, and NotReady again while its hooks run": {
			node: reboots(rebooted(3*minute, 3*minute), nodeCondition(corev1.NodeReady, corev1.ConditionFalse, 40*minute)), policy: options(hooked("x/y")), now: 41 * minute,
			want: waits("booted; waiting for the node to be Ready and for its agent", 70*minute),
		},
		"back, and NotReady again for too long": {
			node: reboots(rebooted(3*minute, 3*minute), nodeCondition(corev1.NodeReady, corev1.ConditionFalse, 40*minute)), policy: options(hooked("x/y")), now: 70 * minute,
			want: fails(v1alpha1.ReasonRebootTimedOut, 70*minute, "the node has booted, but has not stayed Ready in the 30m0s since Mon 2026-06-01 22:40:00 UTC; it keeps "+
				"its slot. Check the machine; once you are sure it is off, delete the Node to free the slot"),
		},
		"back, and repeatedly NotReady: by now it should have been in service": {
			node: reboots(rebooted(3*minute, 3*minute), nodeCondition(corev1.NodeReady, corev1.ConditionFalse, 33*minute)), now: 34 * minute,
			want: fails(v1alpha1.ReasonRebootTimedOut, 34*minute, "the node has booted, but has not stayed Ready in the 30m0s since Mon 2026-06-01 22:04:00 UTC; it keeps "+
				"its slot. Check the machine; once you are sure it is off, delete the Node to free the slot"),
		},
		"lost, although its kubelet has reported since": {
			node:   reboots(rebooted(3*minute, 3*minute), nodeCondition(corev1.NodeReady, corev1.ConditionFalse, 40*minute), permitted(v1alpha1.ReasonRebootTimedOut)),
			policy: options(hooked("x/y")), now: 41 * minute, want: lost("22:00:00", 30*minute),
		},
		"up, and its agent has reported before it is Ready": {
			node: reboots(rebooted(3*minute, 3*minute), nodeCondition(corev1.NodeReady, corev1.ConditionFalse, 2*minute)), now: 4 * minute, want: booted,
		},
		"rebooting with reboot.timeout set": {node: reboots(notReady), policy: options(timeouts), now: time.Hour, want: rebooting(2 * time.Hour)},
		"rebooting, and somebody removed the grant": {
			node: reboots()[1:], want: rebootStep{Action: underway.PublishGrant, Reason: v1alpha1.ReasonGranted, Message: "rebooting; the grant is missing"},
		},

		"back, and settles from Ready on (behaviour 24)":                          {node: reboots(rebooted(10*minute, 9*minute)), now: 10 * minute, want: settling("22:10:00", 11*minute)},
		"back, and settles from the agent's report on":                            {node: reboots(rebooted(-time.Hour, 9*minute)), now: 9 * minute, want: settling("22:09:00", 10*minute)},
		"back, and its clock is a little ahead":                                   {node: reboots(rebooted(12*minute, 9*minute)), now: 10 * minute, want: settling("22:12:00", 13*minute)},
		"back, and its clock is an hour ahead: the manager notes that it is back": {node: reboots(rebooted(70*minute, 69*minute)), now: 10 * minute, want: noted},
		"back, and its agent's clock is an hour ahead":                            {node: reboots(rebooted(9*minute, 70*minute)), now: 10 * minute, want: noted},
		"back, and its clock is three hours behind":                               {node: reboots(rebooted(-170*minute, -170*minute)), now: 10 * minute, want: noted},
		"back, with a wrong clock: settles from when it was seen":                 {node: reboots(rebooted(190*minute, 190*minute), settles), now: 10 * minute, want: finish},
		"back, with a wrong clock: settles for the whole time": {
			node: reboots(rebooted(-170*minute, -170*minute), settles), now: 10*minute - time.Second, want: settling("22:09:00", 10*minute),
		},
		"back, during another program's maintenance, which does not delay it": {
			node: reboots(rebooted(10*minute, 9*minute), maintained("Theirs", 9*minute)), now: 10 * minute, want: settling("22:10:00", 11*minute),
		},
		"back and settled (behaviour 49)": {node: reboots(rebooted(9*minute, 9*minute)), now: 10 * minute, want: finish},
		"back late counts as back":        {node: reboots(rebooted(9*time.Hour, 9*time.Hour)), now: 10 * time.Hour, want: finish},
		"back without a time to settle":   {node: reboots(rebooted(9*minute, 9*minute)), policy: options(timeouts), now: 9 * minute, want: finish},
		"back, although somebody cancelled the grant by hand": {
			node: reboots(rebooted(9*minute, 9*minute), grant(rebootSeq, protocol.GrantCancelled)), now: 10 * minute, want: finish,
		},
	})
}

// TestReboots_TheEntryIsOfTheFuture uses a grant by a leader whose clock was days ahead. The next
// leader counts deadlines from the time when it first saw the entry, and writes that into the
// ledger, even if that is another policy's.
func TestReboots_TheEntryIsOfTheFuture(t *testing.T) {
	const ahead = 72 * time.Hour
	active, late := grant(rebootSeq, protocol.GrantActive, grantedAt(ahead)), progress(rebootSeq, protocol.PhaseRebooting, phaseAt(-time.Hour))
	for name, tc := range map[string]struct {
		node   []func(*host)
		reason v1alpha1.Reason
		after  time.Duration
		policy []func(*v1alpha1.RebootPolicy)
	}{
		"hooks before the drain": {
			options(phase(rebootSeq, v1alpha1.HooksBefore, -time.Hour)), v1alpha1.ReasonHookTimedOut, time.Hour, options(hooked("example.com/a")),
		},
		"draining":   {options(active, progress(rebootSeq, protocol.PhaseDraining, phaseAt(-time.Hour))), v1alpha1.ReasonDrainTimedOut, 35 * minute, nil},
		"rebooting":  {options(active, late, notReady), v1alpha1.ReasonRebootTimedOut, time.Hour, nil},
		"unreadable": {options(active, annotated(v1alpha1.AnnotationProgress, "?")), v1alpha1.ReasonRebootTimedOut, time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := entry("worker-1", rebootSeq)
			e.At = at(ahead)
			own := one(policy("workers", append(tc.policy, holding(rebootSeq, e))...), needy("worker-1", tc.node...))
			first := own.plan()
			e = first.Ledger.Own()[0]
			same(t, "when the grant was given", at(0), e.At)
			own.policies[0].Status.Grants = first.Ledger.Own()
			own.now = evening.Add(tc.after - time.Second)
			same(t, "overdue just before the deadline", time.Time{}, own.plan().Reboots[0].FailedAt)
			own.now = evening.Add(tc.after)
			r := own.plan().Reboots[0]
			if r.Action == underway.CancelGrant { // the slot is freed at once
				r.FailedAt = own.now
			}
			same(t, "reason", tc.reason, r.Reason)
			same(t, "overdue", own.now, r.FailedAt)

			e.Policy, e.At = "workers", at(ahead)
			shared := one(policy("workers", append(tc.policy, sharing("others"))...), own.hosts...).with(policy("others", holding(rebootSeq, e)))
			p := shared.plan()
			same(t, "the other policy's ledger changes", true, p.Ledger.Changed())
			same(t, "when the grant was given, in the other policy's ledger", at(0), p.Ledger.Own()[0].At)
		})
	}
}

// TestReboots_Over checks when an entry leaves the ledger, and why it ended.
func TestReboots_Over(t *testing.T) {
	reboots := progress(rebootSeq, protocol.PhaseRebooting)
	gaveUp := func(reason v1alpha1.Reason, message string) func(*host) {
		return progress(rebootSeq, protocol.PhaseAborted, failed(1, reason, message))
	}
	another := released(v1alpha1.ReasonNodeGone, "the Node object was deleted, and another one was registered under its name")
	testReboots(t, map[string]rebootCase{
		"the Node is deleted (behaviour 25)":                                           {gone: true, want: released(v1alpha1.ReasonNodeGone, "the Node object was deleted")},
		"the Node is deleted, and another one was registered, which has no number yet": {node: options(uid("2")), madeFor: "1", needs: true, want: another},
		"another Node with the same name has a copy of the record": {
			node: options(uid("2"), grant(rebootSeq, protocol.GrantActive), reboots), madeFor: "1", want: another,
		},
		"finished": {node: options(grant(rebootSeq, protocol.GrantFinished), reboots), want: released(v1alpha1.ReasonGranted, "back in service")},
		"given up by the agent (behaviour 38)": {
			node: options(grant(rebootSeq, protocol.GrantActive), gaveUp(v1alpha1.ReasonDrainTimedOut, "db-0 stays")),
			want: released(v1alpha1.ReasonDrainTimedOut, "db-0 stays"),
		},
		"given up by the agent, and the grant is gone": {
			node: options(gaveUp(v1alpha1.ReasonRecordUnreadable, "?")), want: released(v1alpha1.ReasonRecordUnreadable, "?"),
		},
		"cancelled before the start": {
			node: options(grant(rebootSeq, protocol.GrantCancelled, cancelledAt(0, v1alpha1.ReasonPaused)), progress(4, protocol.PhaseAborted)),
			want: released(v1alpha1.ReasonPaused, "the grant was cancelled before the drain began"),
		},
		"another policy's grant of the same number": {
			another: policy("better", priority(1)), node: options(grant(rebootSeq, protocol.GrantActive, givenBy("better")), reboots),
			want: released(v1alpha1.ReasonCancelled, "a grant of policy better replaced it"),
		},
		"replaced by a newer grant": {
			node: options(grant(6, protocol.GrantActive, givenBy("better")), reboots), want: released(v1alpha1.ReasonCancelled, "a newer grant replaced it"),
		},
	})
}

// TestPlan_ReportsRefusedWrites checks that a refused write is reported with its node, the time
// since which the slot is held, and the answer in one short line. An old answer does not count if
// no write is due.
func TestPlan_ReportsRefusedWrites(t *testing.T) {
	const since = "has held a slot since Mon 2026-06-01 22:00:00 UTC, and the API server refuses the manager's writes about its reboot: "
	const kept = "; the grant will be withdrawn Mon 2026-06-01 22:05:00 UTC, which frees the slot"
	a, b, c := entry("a", 1), entry("b", 2), entry("c", 3)
	for name, tc := range map[string]struct {
		answers map[string]string
		granted bool
		nodes   int
		want    string
	}{
		"none":               {},
		"one":                {answers: map[string]string{"b": "denied"}, nodes: 1, want: "node b " + since + "denied" + kept},
		"several":            {answers: map[string]string{"a": "no", "b": "denied", "c": "x"}, nodes: 3, want: "node a " + since + "no" + kept + "; the same holds for b, c"},
		"control characters": {answers: map[string]string{"a": "de\x1b[2Jn\nied\u202e"}, nodes: 1, want: "node a " + since + "de\uFFFD[2Jn ied\uFFFD" + kept},
		"a long answer":      {answers: map[string]string{"a": strings.Repeat("é", 40_000)}, nodes: 1, want: "node a " + since + strings.Repeat("é", 254) + "…" + kept},
		"no write is due":    {answers: map[string]string{"a": "denied"}, granted: true},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := []*host{needy("a"), needy("b"), needy("c")}
			if tc.granted {
				hosts[0] = needy("a", grant(1, protocol.GrantActive))
			}
			s := one(policy("workers", atMost("3"), holding(3, a, b, c)), hosts...).snapshot()
			s.Refused = map[string]underway.Refusal{}
			for node, answer := range tc.answers {
				s.Refused[node] = underway.Refusal{Answer: answer, Since: evening}
			}
			p := plan.Of(s)
			nodes, message := p.Refused()
			same(t, "refused writes", []any{tc.nodes, tc.want}, []any{nodes, message})
		})
	}
}

// TestReboots_FreesASlotThatCannotBeUsed checks that a grant that cannot be published is
// withdrawn in the ledger after five minutes. Its slot is free once a newer reading of the Node
// does not show it. A grant that the Node shows goes on like any other.
func TestReboots_FreesASlotThatCannotBeUsed(t *testing.T) {
	const active = protocol.GrantActive
	type step struct {
		Action underway.Action
		Reason v1alpha1.Reason
		Until  time.Time
	}
	shown := grant(1, active)
	for name, tc := range map[string]struct {
		node      []func(*host)
		policy    func(*v1alpha1.RebootPolicy)
		refused   time.Duration // for how long, or 0 if not refused
		withdrawn bool
		unread    bool
		want      step
		withdraws bool // whether the entry is withdrawn after the plan
		granted   []string
	}{
		"it is published again and again for five minutes": {
			refused: 299 * time.Second, want: step{underway.PublishGrant, v1alpha1.ReasonGranted, instantAfter(time.Second)},
		},
		"after five minutes it is withdrawn":       {refused: 5 * minute, want: step{Action: underway.WithdrawGrant, Reason: v1alpha1.ReasonGranted}, withdraws: true},
		"a grant that is not refused is published": {want: step{Action: underway.PublishGrant, Reason: v1alpha1.ReasonGranted}},
		"hooks that cannot start do not delay the withdrawal": {
			policy: hooked("example.com/ok"), refused: 5 * minute, want: step{Action: underway.WithdrawGrant, Reason: v1alpha1.ReasonWaitingForHook}, withdraws: true,
		},
		"a check that blocks does not delay the withdrawal": {
			node: []func(*host){annotated(v1alpha1.AnnotationPaused, "true")}, refused: 5 * minute,
			want: step{Action: underway.WithdrawGrant, Reason: v1alpha1.ReasonNodePaused}, withdraws: true,
		},
		"withdrawn, its slot goes to the next node": {
			withdrawn: true, want: step{Action: underway.ReleaseEntry, Reason: v1alpha1.ReasonNodeWriteRefused}, granted: []string{"b"},
		},
		"not before its Node could be read": {
			withdrawn: true, unread: true, want: step{Action: underway.Wait, Reason: v1alpha1.ReasonNodeWriteRefused}, withdraws: true,
		},
		"withdrawn, but shown on the Node": {
			node: []func(*host){shown}, withdrawn: true, want: step{Action: underway.CancelGrant, Reason: v1alpha1.ReasonGrantWithdrawn}, withdraws: true,
		},
		"withdrawn, and its agent had begun before": {
			node: []func(*host){shown, progress(1, protocol.PhaseDraining)}, withdrawn: true,
			want: step{underway.Wait, v1alpha1.ReasonGranted, instantAfter(30 * minute)}, withdraws: true,
		},
		"withdrawn, past the point of no return, and somebody removed the grant": {
			node: []func(*host){progress(1, protocol.PhaseRebooting)}, withdrawn: true, want: step{Action: underway.PublishGrant, Reason: v1alpha1.ReasonGranted}, withdraws: true,
		},
		"a grant that the Node shows cannot be withdrawn": {
			node: []func(*host){shown, annotated(v1alpha1.AnnotationPaused, "true")}, refused: time.Hour,
			want: step{Action: underway.CancelGrant, Reason: v1alpha1.ReasonNodePaused},
		},
		"a grant with unreadable progress stays": {
			node: []func(*host){annotated(v1alpha1.AnnotationProgress, "?")}, refused: time.Hour, want: step{Action: underway.PublishGrant, Reason: v1alpha1.ReasonGranted},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := entry("a", 1)
			if tc.withdrawn {
				e.WithdrawnAt = &metav1.Time{Time: evening}
			}
			p := policy("workers", holding(1, e))
			if tc.policy != nil {
				tc.policy(p)
			}
			s := one(p, needy("a", tc.node...), needy("b")).snapshot()
			if tc.refused > 0 {
				s.Refused = map[string]underway.Refusal{"a": {Answer: "denied", Since: evening.Add(-tc.refused)}}
			}
			s.Unread = map[string]bool{"a": tc.unread}
			got := plan.Of(s)
			f := got.Reboots[0]
			same(t, "reboot", tc.want, step{f.Action, f.Reason, f.Until})
			ledger := got.Ledger.Own()
			withdrawn := ledger[0].Node == "a" && ledger[0].WithdrawnAt != nil
			same(t, "granted", tc.granted, names(got.Ledger.Granted))
			same(t, "withdrawn", tc.withdraws, withdrawn)
			same(t, "the ledger changes", f.Action == underway.WithdrawGrant || f.Action == underway.ReleaseEntry, got.Ledger.Changed())
		})
	}
}

// TestReboots_BacksOffAfterAWithdrawnGrant checks that a node whose grant could not be published
// backs off, and others go before it. The history keeps it for the next leader and for people.
func TestReboots_BacksOffAfterAWithdrawnGrant(t *testing.T) {
	e := entry("a", 1)
	e.WithdrawnAt = &metav1.Time{Time: evening}
	p := policy("workers", holding(1, e))
	s := one(p, needy("a")).snapshot()
	s.Refused = map[string]underway.Refusal{"a": {Answer: "denied"}}
	before := plan.Of(s)
	p.Status.Grants, p.Status.History = nil, before.History(p, evening)
	want := []v1alpha1.PastReboot{{
		Node: "a", Seq: 1, Result: v1alpha1.RebootWithdrawn, Reason: v1alpha1.ReasonNodeWriteRefused, GrantedAt: e.At, EndedAt: metav1.NewTime(evening),
		Message: "the API server refused the manager's writes to the Node: denied",
	}}
	same(t, "history", want, p.Status.History)
	const leaderWasAhead = -24 * time.Hour
	for after, waits := range map[time.Duration]bool{30*minute - 1: true, 30 * minute: false, leaderWasAhead: false} {
		s := one(p, needy("a")).snapshot()
		s.Now = evening.Add(after)
		got := plan.Of(s)
		if waits == (len(got.Ledger.Granted) > 0) || waits && (got.Blocked[0].Reason != v1alpha1.ReasonBackingOff || !got.Next.Equal(evening.Add(30*minute))) {
			t.Errorf("after %s: granted %v, blocked %v, next %s", after, got.Ledger.Granted, got.Blocked, got.Next)
		}
	}
}

// TestReboots_RestsANodeAfterItsReboot checks that a node rests after each reboot, even if its need
// comes back at once. An administrator's request does not wait, but a controller's label does.
func TestReboots_RestsANodeAfterItsReboot(t *testing.T) {
	asks := annotated(v1alpha1.AnnotationRebootRequested, "now")
	labels := label(v1alpha1.LabelRebootRequested, "now")
	cases := map[string]struct {
		node  *host
		after time.Duration
		waits bool
	}{
		"right after its return":     {needy("a", rebootedAt(evening)), time.Minute, true},
		"almost half an hour later":  {needy("a", rebootedAt(evening)), 30*minute - 1, true},
		"half an hour later":         {needy("a", rebootedAt(evening)), 30 * minute, false},
		"requested by an annotation": {needy("a", rebootedAt(evening), asks), time.Minute, false},
		"requested by a label":       {needy("a", rebootedAt(evening), labels), time.Minute, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := one(policy("workers", holding(1)), tc.node).snapshot()
			s.Now, s.RebootInterval = evening.Add(tc.after), record.DefaultRebootInterval
			got := plan.Of(s)
			if tc.waits == (len(got.Ledger.Granted) > 0) {
				t.Fatalf("granted %v, blocked %v", got.Ledger.Granted, got.Blocked)
			}
			if tc.waits && (got.Blocked[0].Reason != v1alpha1.ReasonBackingOff || !got.Next.Equal(evening.Add(30*minute))) {
				t.Errorf("blocked %v, next %s", got.Blocked, got.Next)
			}
		})
	}
}

// rebootedAt sets when the node was back in service after reboot 1.
func rebootedAt(at time.Time) func(*host) {
	return grant(1, protocol.GrantFinished, func(g *protocol.Grant) { g.At = metav1.NewTime(at) })
}

// TestReboots_LooksAgainWhenARecordIsBelieved checks that a record dated in the future counts once
// it is at most an hour ahead. The granting policy looks again then, even if another one governs
// the node by now, because the Node itself may not change.
func TestReboots_LooksAgainWhenARecordIsBelieved(t *testing.T) {
	moved := needy("a", label("pool", "db"), grant(1, protocol.GrantActive), progress(2, protocol.PhaseRebooting, phaseAt(24*time.Hour)))
	s := one(policy("workers", holding(2)), moved).with(policy("db", selects("pool", "db"), priority(1)))
	snapshot := s.snapshot()
	before := plan.Of(snapshot)
	if len(before.Ledger.Adopted)+len(before.Unlisted) > 0 || !before.Next.Equal(evening.Add(23*time.Hour)) {
		t.Errorf("adopted %v, unlisted %v, next %v", before.Ledger.Adopted, before.Unlisted, before.Next)
	}
	snapshot.Now = before.Next
	if then := plan.Of(snapshot); len(then.Ledger.Adopted)+len(then.Unlisted) != 1 {
		t.Errorf("adopted %v, unlisted %v", then.Ledger.Adopted, then.Unlisted)
	}
}
