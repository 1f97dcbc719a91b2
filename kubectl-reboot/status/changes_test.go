package status_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	. "github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
)

// at returns the status of a pool at a time after Now.
func at(later time.Duration, p v1alpha1.RebootPolicy, nodes ...corev1.Node) status.Status {
	return status.Of(fleet.New([]v1alpha1.RebootPolicy{p}, nodes, Now.Add(later)))
}

// TestChanges tests the lines of a whole reboot, and that nothing is printed without a change.
func TestChanges(t *testing.T) {
	night := 6 * time.Hour
	granted := func(more ...func(*corev1.Node)) corev1.Node {
		return Node("n1", "w", append(more, Needs(time.Hour), Granted("w", 7, -night))...)
	}
	draining, rebooting := Progressed(7, protocol.PhaseDraining, -night), Progressed(7, protocol.PhaseRebooting, -night)
	held, idle := Policy("w", Weeknights, Holds("n1", 7, -night)), Policy("w", Weeknights)
	n2 := Node("n2", "w", Needs(time.Hour))
	steps := []struct {
		what   string
		status status.Status
		want   []string
	}{
		{"everything is new", at(0, idle, Node("n1", "w"), n2), []string{
			"Mon 15:48:00  policy w: 1 of 2 up to date, 0 in progress, 1 waiting (1 WindowClosed), 0 failed; opens Mon 2026-11-23 21:00 UTC; done 21:06 UTC, in about 5h18m",
		}},
		{"time alone is not a change", at(time.Hour, idle, Node("n1", "w"), n2), nil},
		{"the window opens, and the ledger has an entry", at(night, held, granted(), n2), []string{
			"Mon 21:48:00  n1: Granted",
			"Mon 21:48:00  policy w: 0 of 2 up to date, 1 in progress, 1 waiting (1 BudgetExhausted), 0 failed; open until Tue 2026-11-24 03:00 UTC; done 22:00 UTC, in about 12m",
		}},
		{"the drain", at(night, held, granted(draining), n2), []string{"Mon 21:48:00  n1: Granted → Draining"}},
		{"midnight changes nothing", at(night+3*time.Hour-time.Second, Policy("w", Weeknights, Holds("n1", 7, -night-3*time.Hour)),
			Node("n1", "w", Needs(time.Hour), Granted("w", 7, -night-3*time.Hour), Progressed(7, protocol.PhaseDraining, -night-3*time.Hour)), n2), nil},
		{"the point of no return", at(night, held, granted(rebooting), n2), []string{
			"Mon 21:48:00  n1: Draining → Rebooting",
		}},
		{"it does not come back", at(night+time.Hour, held, granted(rebooting, NotReady), n2), []string{
			"Mon 22:48:00  n1: RebootTimedOut: the node was sent to reboot at Mon 2026-11-23 22:48:00 CET and was not back within 30m0s; " +
				"it keeps its slot. Check the machine; once you are sure it is off, delete the Node to free the slot",
			"Mon 22:48:00  policy w: 0 of 2 up to date, 1 in progress, 1 waiting (1 BudgetExhausted), 1 failed; open until Tue 2026-11-24 03:00 UTC",
		}},
		{"it does, late", at(night+time.Hour, held, Node("n1", "w", Granted("w", 7, 0), rebooting, Booted(-night-time.Hour)), n2), []string{
			"Mon 22:48:00  n1: Rebooting → Settling",
			"Mon 22:48:00  policy w: 0 of 2 up to date, 1 in progress, 1 waiting (1 BudgetExhausted), 0 failed; open until Tue 2026-11-24 03:00 UTC; done 22:55 UTC, in about 7m",
		}},
		{"a second reboot", at(night+time.Hour, Policy("w", Weeknights, Holds("n1", 8, -night-time.Hour)),
			Node("n1", "w", Needs(time.Hour), Granted("w", 8, -night-time.Hour)), n2), []string{"Mon 22:48:00  n1: Granted"}},
		{"a third one, in the same phase", at(night+time.Hour, Policy("w", Weeknights, Holds("n1", 9, -night-time.Hour)),
			Node("n1", "w", Needs(time.Hour), Granted("w", 9, -night-time.Hour)), n2), []string{"Mon 22:48:00  n1: Granted"}},
		{"a node is paused, and stays", at(night+time.Hour, Policy("w", Weeknights, Holds("n1", 9, -night-time.Hour)),
			Node("n1", "w", Needs(time.Hour), Granted("w", 9, -night-time.Hour)), Node("n2", "w", Needs(time.Hour), Annotated(v1alpha1.AnnotationPaused, "true"))), []string{
			"Mon 22:48:00  policy w: 0 of 2 up to date, 1 in progress, 1 waiting (1 NodePaused), 0 failed; open until Tue 2026-11-24 03:00 UTC; all but 1 done 22:54 UTC, in about 6m",
		}},
		{"done", at(night+time.Hour, idle, Node("n1", "w", Booted(-night)), n2), []string{
			"Mon 22:48:00  n1: back in service",
			"Mon 22:48:00  policy w: 1 of 2 up to date, 0 in progress, 1 waiting, 0 failed; open until Tue 2026-11-24 03:00 UTC; done 22:54 UTC, in about 6m",
		}},
	}
	var before status.Status
	for _, step := range steps {
		if diff := cmp.Diff(step.want, step.status.Changes(before, time.UTC)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
		before = step.status
	}
}

// TestChanges_Zone tests that times inside the manager's sentences are in the reader's time zone,
// too.
func TestChanges_Zone(t *testing.T) {
	late := at(time.Hour, Policy("w", Holds("n1", 7, 0)), Node("n1", "w", Needs(time.Hour), Granted("w", 7, 0), Progressed(7, protocol.PhaseRebooting, 0), NotReady))
	const want = "Mon 17:48:00  n1: RebootTimedOut: the node was sent to reboot at Mon 2026-11-23 16:48:00 CET "
	if got := late.Changes(status.Status{}, Berlin)[0]; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestChanges_Notices tests that whatever begins to need a person has a line with the command that
// helps, and another line when it ends. A message that only changes does not end it.
func TestChanges_Notices(t *testing.T) {
	stuck := func(message string) status.Status {
		return at(0, Policy("w"), Node("n1", "w", Needs(time.Hour), blocked(v1alpha1.ReasonCoordinatorConflict, message)))
	}
	const other, needs = "kured is active", "needs you: n1: CoordinatorConflict: "
	calm, silent := at(0, Policy("w")), fleet.New(nil, nil, Now)
	silent.Manager = fleet.ManagerOf(nil, nil)
	down := status.Of(silent)
	unread := func(port string) status.Status {
		f := fleet.New(nil, nil, Now)
		f.Manager = fleet.ManagerOf(nil, errors.New("read tcp 10.0.0.1:"+port+": connection reset by peer"))
		return status.Of(f)
	}
	cases := map[string]struct {
		before, after status.Status
		want          []string
	}{
		"it begins":                         {calm, stuck(other), []string{needs + other + ". Run: kubectl reboot explain n1"}},
		"it was there at the start":         {status.Status{}, stuck(other), []string{needs + other + ". Run: kubectl reboot explain n1"}},
		"it stays":                          {stuck(other), stuck(other), nil},
		"it stays for another cause":        {stuck(other), stuck("FLUO is active"), []string{needs + "FLUO is active. Run: kubectl reboot explain n1"}},
		"it ends":                           {stuck(other), calm, []string{"no longer " + needs + other}},
		"the manager stops":                 {status.Of(fleet.New(nil, nil, Now)), down, []string{"needs you: " + down.ManagerTrouble() + ". Run: " + status.LookAtManager}},
		"the Lease cannot be read":          {status.Of(fleet.New(nil, nil, Now)), unread("1"), []string{"needs you: " + unread("1").ManagerTrouble() + ". Run: " + status.LookAtManager}},
		"the Lease cannot be read, again":   {unread("1"), unread("2"), nil},
		"the Lease can be read, and is old": {unread("1"), down, []string{"needs you: " + down.ManagerTrouble() + ". Run: " + status.LookAtManager}},
		"the manager starts":                {down, status.Of(fleet.New(nil, nil, Now)), []string{"no longer needs you: " + down.ManagerTrouble()}},
		"a pause is chosen": {calm, at(0, Policy("w", Spec(func(s *v1alpha1.RebootPolicySpec) {
			s.Pause = &v1alpha1.Pause{Reason: "test"}
		}))), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, line := range tc.after.Changes(tc.before, time.UTC) {
				if line = line[len("Mon 15:48:00  "):]; strings.Contains(line, "needs you") {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestProgress_Notices tests that a command that waits for a node says what needs a person there.
func TestProgress_Notices(t *testing.T) {
	f := fleet.New([]v1alpha1.RebootPolicy{Policy("w")}, []corev1.Node{
		Node("n1", "w", Needs(time.Hour), blocked(v1alpha1.ReasonCoordinatorConflict, "kured is active")),
		Node("n2", "w", Needs(time.Hour), blocked(v1alpha1.ReasonCoordinatorConflict, "FLUO is active")),
		Node("n3", "other", Needs(time.Hour)),
	}, Now)
	progress := status.ProgressOf(f, map[string]bool{"n1": true, "n3": true}, func(*corev1.Node, *record.Node) string { return "in need of a reboot" })
	want := []string{
		"Mon 15:48:00  needs you: n1: CoordinatorConflict: kured is active. Run: kubectl reboot explain n1",
		"Mon 15:48:00  needs you: no policy selects n3, but a reboot is needed there. Run: kubectl reboot explain n3",
		"Mon 15:48:00  0 of 2 done, 1 CoordinatorConflict, 1 NoPolicy",
	}
	if diff := cmp.Diff(want, progress.Lines(status.Progress{}, time.UTC)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestChanges_Ends tests reboots that fail, and nodes that disappear.
func TestChanges_Ends(t *testing.T) {
	granted := at(0, Policy("w", Holds("n1", 7, 0)), Node("n1", "w", Needs(time.Hour), Granted("w", 7, 0)))
	failed := Progressed(7, protocol.PhaseAborted, 0, func(p *protocol.Progress) { p.Failures, p.Reason = 1, v1alpha1.ReasonDrainTimedOut })
	cases := map[string]struct {
		after status.Status
		want  string
	}{
		"the drain failed":     {at(0, Policy("w"), Node("n1", "w", Needs(time.Hour), failed)), "n1: waits again: BackingOff"},
		"the node is gone":     {at(0, Policy("w")), "n1: left the policy"},
		"the back-off is over": {at(0, Policy("w"), Node("n1", "w", Needs(time.Hour))), "n1: waits again"},
		"the policy is gone":   {status.Of(fleet.New(nil, nil, Now)), "policy w: deleted"},
		"no policy selects it": {
			status.Of(fleet.New(nil, []corev1.Node{Node("n1", "w", Needs(time.Hour))}, Now)), "policy w: deleted\nno policy: selects n1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var lines []string
			for _, line := range tc.after.Changes(granted, time.UTC) {
				lines = append(lines, line[len("Mon 15:48:00  "):])
			}
			got := strings.Join(lines, "\n")
			if len(got) > len(tc.want) {
				got = got[:len(tc.want)] // the policy's counts follow
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
