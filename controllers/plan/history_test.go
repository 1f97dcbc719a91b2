package plan_test

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

func lasts(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func at(d time.Duration) metav1.Time { return metav1.NewTime(evening.Add(d)) }

// TestPlan_History: what is remembered of a reboot when its entry leaves the ledger.
func TestPlan_History(t *testing.T) {
	drainedFrom := func(since time.Duration) func(*protocol.Progress) {
		return func(p *protocol.Progress) { p.DrainStartedAt = new(at(since)) }
	}
	forcing := func(pods int32) func(*protocol.Progress) {
		return func(p *protocol.Progress) { p.PodsForced = pods }
	}
	needed := func(need v1alpha1.Reason) func(*protocol.Grant) { return func(g *protocol.Grant) { g.Need = need } }
	finished := func(g *protocol.Grant) { g.At = at(0) }
	held := policy("workers", holding(7, v1alpha1.LedgerEntry{Node: "a", Seq: 7, BootID: "a-boot-1", At: at(-10 * minute), OSVersion: "1.0"}))
	past := func(p v1alpha1.PastReboot) []v1alpha1.PastReboot {
		p.Node, p.Seq, p.GrantedAt, p.FromVersion = "a", 7, at(-10*minute), "1.0"
		return []v1alpha1.PastReboot{p}
	}
	cases := map[string]struct {
		situation situation
		want      []v1alpha1.PastReboot
	}{
		"a reboot": {
			one(held, newHost("a", label(v1alpha1.LabelOSVersion, "2.0"), rebooted(-3*minute, -2*minute),
				grant(7, protocol.GrantFinished, finished, needed(v1alpha1.ReasonUpdateStaged)),
				progress(7, protocol.PhaseRebooting, phaseAt(-6*minute), drainedFrom(-9*minute), forcing(3)))),
			past(v1alpha1.PastReboot{
				PodsForced: 3, Result: v1alpha1.RebootSucceeded, Reason: v1alpha1.ReasonUpdateStaged, ToVersion: "2.0", EndedAt: at(0),
				Drain: lasts(3 * minute), Reboot: lasts(4 * minute), Settle: lasts(2 * minute),
			}),
		},
		"a drain that was given up": {
			one(held, needy("a", grant(7, protocol.GrantActive), progress(7, protocol.PhaseAborted, phaseAt(-minute), drainedFrom(-9*minute),
				func(p *protocol.Progress) { p.Reason, p.Message = v1alpha1.ReasonDrainTimedOut, "web-1 stays" }, forcing(math.MaxInt32)))),
			past(v1alpha1.PastReboot{
				PodsForced: math.MaxInt32, Result: v1alpha1.RebootAborted, Reason: v1alpha1.ReasonDrainTimedOut, Message: "web-1 stays",
				EndedAt: at(-minute), Drain: lasts(8 * minute),
			}),
		},
		"a Node that was deleted": {
			one(held), past(v1alpha1.PastReboot{Result: v1alpha1.RebootLost, Reason: v1alpha1.ReasonNodeGone, Message: "the Node object was deleted", EndedAt: at(0)}),
		},
		"a Node that was deleted in its reboot": {
			one(policy("workers", holding(7, v1alpha1.LedgerEntry{Node: "a", Seq: 7, BootID: "a-boot-1", At: at(-10 * minute), OSVersion: "1.0", RebootingAt: new(at(-5 * minute)), Ring: "canary"}))),
			past(v1alpha1.PastReboot{
				Result: v1alpha1.RebootLost, Reason: v1alpha1.ReasonNodeGoneInReboot, Ring: "canary", EndedAt: at(0),
				Message: "the Node object was deleted, after it was sent to reboot at Mon 2026-06-01 21:55:00 UTC and before it was back in service: see to the machine, or to what deletes Nodes",
			}),
		},
		"a grant that was taken back before the drain disturbed nobody": {one(held, needy("a", grant(7, protocol.GrantCancelled))), nil},
		"clocks that disagree measure nothing": {
			one(held, newHost("a", rebooted(-3*minute, -2*minute), grant(7, protocol.GrantFinished, finished),
				progress(7, protocol.PhaseRebooting, phaseAt(minute), drainedFrom(2*minute)))),
			past(v1alpha1.PastReboot{Result: v1alpha1.RebootSucceeded, EndedAt: at(0), Settle: lasts(2 * minute)}),
		},
		"clocks that are years ahead measure nothing, and end nothing in the future": {
			one(held, newHost("a", rebooted(-3*minute, 20*365*24*time.Hour), grant(7, protocol.GrantFinished, grantedAt(time.Hour)),
				progress(7, protocol.PhaseRebooting, phaseAt(-6*minute), drainedFrom(-9*minute)))),
			past(v1alpha1.PastReboot{Result: v1alpha1.RebootSucceeded, EndedAt: at(0), Drain: lasts(3 * minute)}),
		},
		"a drain that was given up by a clock that is years behind": {
			one(held, needy("a", grant(7, protocol.GrantActive), progress(7, protocol.PhaseAborted, phaseAt(-20*365*24*time.Hour), drainedFrom(-20*365*24*time.Hour-8*minute)))),
			past(v1alpha1.PastReboot{Result: v1alpha1.RebootAborted, EndedAt: at(-10 * minute), Drain: lasts(8 * minute)}),
		},
		"a boot whose clock was hours ahead until it asked for the time": {
			one(held, newHost("a", rebooted(-3*minute, 3*time.Hour), grant(7, protocol.GrantFinished, finished), progress(7, protocol.PhaseRebooting, phaseAt(-6*minute)))),
			past(v1alpha1.PastReboot{Result: v1alpha1.RebootSucceeded, EndedAt: at(0)}),
		},
		"a reboot that goes on is no history": {one(held, newHost("a", grant(7, protocol.GrantActive), progress(7, protocol.PhaseRebooting))), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := tc.situation.plan()
			same(t, "history", tc.want, p.History(nil, evening))
		})
	}
}

// TestPlan_HistoryIsBounded: the oldest go, by number and by bytes, and what was there is not changed in place.
func TestPlan_HistoryIsBounded(t *testing.T) {
	remembered := func(n int, message string) []v1alpha1.PastReboot {
		var history []v1alpha1.PastReboot
		for i := range n {
			history = append(history, v1alpha1.PastReboot{Node: strconv.Itoa(i), Seq: int64(i), Message: message})
		}
		return history
	}
	gone := one(policy("workers", holding(99, entry("new", 99)))).plan()
	before := remembered(20, "")
	after := gone.History(before, evening)
	if len(after) != 20 || after[0].Node != "1" || after[19].Node != "new" || before[0].Node != "0" || len(before) != 20 {
		t.Errorf("of 20 and one more are left %d, from %s to %s", len(after), after[0].Node, after[len(after)-1].Node)
	}
	long := gone.History(remembered(20, strings.Repeat("x", 1024)), evening)
	text, err := json.Marshal(long)
	if err != nil || len(text) > 8<<10 || long[len(long)-1].Node != "new" || len(long) < 5 {
		t.Errorf("%d long ones are left, %d bytes, %v", len(long), len(text), err)
	}
	if kept := (&plan.Plan{}).History(before, evening); len(kept) != 20 {
		t.Errorf("%d of 20 are kept where nothing ends", len(kept))
	}
}

// TestReboots_WindowTooShort: how much of a window has to be left to begin a reboot.
func TestReboots_WindowTooShort(t *testing.T) {
	remembers := func(history ...v1alpha1.PastReboot) func(*v1alpha1.RebootPolicy) {
		return func(p *v1alpha1.RebootPolicy) { p.Status.History = history }
	}
	took := func(drain, reboot time.Duration) v1alpha1.PastReboot {
		return v1alpha1.PastReboot{Result: v1alpha1.RebootSucceeded, Drain: lasts(drain), Reboot: lasts(reboot)}
	}
	open := func(length time.Duration) func(*v1alpha1.RebootPolicy) {
		return func(p *v1alpha1.RebootPolicy) {
			p.Spec.Windows = []v1alpha1.Window{
				{Name: "short", Start: "00:00", Duration: metav1.Duration{Duration: minute}},
				{Name: "w", Start: "22:00", Duration: metav1.Duration{Duration: length}},
			}
		}
	}
	nine := slices.Repeat([]v1alpha1.PastReboot{took(minute, minute)}, 9)
	blackouts := func(p *v1alpha1.RebootPolicy) {
		p.Spec.Drain = &v1alpha1.Drain{Timeout: lasts(20 * minute), VolumeDetachTimeout: lasts(5 * minute)}
		p.Spec.Reboot = &v1alpha1.Reboot{Timeout: lasts(15 * minute)}
	}
	cases := map[string]struct {
		policy *v1alpha1.RebootPolicy
		left   time.Duration
		short  bool
	}{
		"without windows, before a blackout, all the time-outs":   {policy("workers", blackouts, remembers(took(9*time.Hour, 0))), 40 * minute, false},
		"and no more than they":                                   {policy("workers", blackouts, remembers(took(9*time.Hour, 0))), 40*minute - time.Second, true},
		"before the first reboot, five minutes":                   {policy("workers", open(4*time.Hour)), 5 * minute, false},
		"before the first reboot, a second less":                  {policy("workers", open(4*time.Hour)), 5*minute - time.Second, true},
		"before the first reboot, the lead time and five minutes": {policy("workers", open(4*time.Hour), leads(10*minute)), 15 * minute, false},
		"and a second less":                                       {policy("workers", open(4*time.Hour), leads(10*minute)), 15*minute - time.Second, true},
		"a lead time that no reboot has had yet":                  {policy("workers", open(4*time.Hour), leads(10*minute), remembers(took(minute, 10*minute))), 20*minute - time.Second, true},
		"what the last reboot took":                               {policy("workers", open(4*time.Hour), remembers(took(20*minute, 10*minute))), 30 * minute, false},
		"a second less than that":                                 {policy("workers", open(4*time.Hour), remembers(took(20*minute, 10*minute))), 30*minute - time.Second, true},
		"one slow reboot in ten is left out":                      {policy("workers", open(4*time.Hour), remembers(append(nine, took(time.Hour, 0))...)), 2 * minute, false},
		"two in eleven count":                                     {policy("workers", open(4*time.Hour), remembers(append(nine, took(20*minute, 0), took(20*minute, 0))...)), 19 * minute, true},
		"a drain that was given up counts nothing":                {policy("workers", open(4*time.Hour), remembers(v1alpha1.PastReboot{Result: v1alpha1.RebootAborted, Drain: lasts(time.Hour)})), 5 * minute, false},
		"half of the longest window is always there":              {policy("workers", open(time.Hour), remembers(took(9*time.Hour, 0))), 30 * minute, false},
		"and no more than half":                                   {policy("workers", open(time.Hour), remembers(took(9*time.Hour, 0))), 30*minute - time.Second, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := one(tc.policy, needy("a"))
			s.window = &window.State{Open: true, Name: "w", ClosesAt: evening.Add(tc.left), Next: evening.Add(tc.left)}
			p := s.plan()
			got := refusals(p)
			closes := evening.Add(tc.left).UTC().Format("Mon 2006-01-02 15:04:05 UTC")
			want := map[string]string{"a": "WindowTooShort: no reboot is begun so shortly before the end: the window closes " + closes +
				", and status.history shows how long a drain and a reboot take"}
			if !tc.short {
				want = nil
			}
			same(t, "waits", want, got)
			if turns := evening.Add(tc.left); !tc.short && (p.Next.IsZero() || p.Next.After(turns)) {
				t.Errorf("the plan is looked at again %v, after the window is too short", p.Next)
			}
		})
	}
}
