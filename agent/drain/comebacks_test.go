package drain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/agent/volume"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func of(controller types.UID) func(*target) { return func(t *target) { t.controller = controller } }

func tolerant(t *target) { t.tolerates = true }

func blocking(t *target) { t.blocks = true }

// lists applies a new LIST. come adds pods by the watch, gone removes a pod, and leave lets an
// evicted pod terminate and go.
func (s *script) lists(pods ...target) *script {
	s.p.replace(pods)
	return s
}

func (s *script) gone(uid types.UID) *script {
	s.p.remove(uid)
	return s
}

func (s *script) come(pods ...target) *script {
	for _, t := range pods {
		s.p.put(t)
	}
	return s
}

func (s *script) leave(t target) *script {
	s.sent(t.uid).answered(0, yes, t.uid)
	t.deleted = at(30)
	s.p.put(t)
	s.p.remove(t.uid)
	return s
}

// TestComebacks shows which of the pods that appear during a drain are evicted and which stay.
func TestComebacks(t *testing.T) {
	old := makeTarget("old", of("rs"))
	fresh := makeTarget("fresh", of("rs"), tolerant)
	back := func(name, message string) Pod {
		return Pod{Namespace: "default", Name: name, UID: types.UID(name), Message: message}
	}
	cases := map[string]struct {
		script *script
		// goes are the pods to evict next, back the pods that came back and stay, and waits the
		// pods that the drain waits for.
		goes  []types.UID
		back  []Pod
		waits []Pod
	}{
		"a replacement that tolerates the cordon stays": {
			script: begin(t, old).leave(old).come(fresh),
			back:   []Pod{back("fresh", comesBackTolerant)},
		},
		"a replacement that tolerates the cordon stays while the old pod terminates": {
			script: begin(t, old).sent("old").come(makeTarget("old", of("rs"), deleted(-60)), fresh),
			back:   []Pod{back("fresh", comesBackTolerant)},
			waits:  []Pod{blockedPod("old", "StuckTerminating", "still there after its grace period, which ended at Fri 2027-01-15 07:59:00 UTC")},
		},
		"a replacement that tolerates the cordon stays if a new LIST shows it without the old pod": {
			script: begin(t, old).sent("old").lists(fresh),
			back:   []Pod{back("fresh", comesBackTolerant)},
		},
		"a replacement stays reported while it terminates": {
			script: begin(t, old).leave(old).come(fresh, makeTarget("fresh", of("rs"), tolerant, deleted(10))),
			back:   []Pod{back("fresh", comesBackTolerant)},
		},
		"a replacement that is gone is not reported any more": {
			script: begin(t, old).leave(old).come(fresh).gone("fresh"),
		},
		"a replacement that a new LIST does not show is not reported any more": {
			script: begin(t, old).leave(old).come(fresh).lists(),
		},
		"a replacement that does not tolerate the cordon is evicted": {
			script: begin(t, old).leave(old).come(makeTarget("again", of("rs"))),
			goes:   []types.UID{"again"},
		},
		"the second replacement stays": {
			script: begin(t, old).leave(old).come(makeTarget("again", of("rs"))).leave(makeTarget("again", of("rs"))).come(makeTarget("and-again", of("rs"))),
			back:   []Pod{back("and-again", comesBackPlaced)},
		},
		"several pods of one controller at the start count once": {
			script: begin(t, old, makeTarget("other", of("rs"))).leave(old).leave(makeTarget("other", of("rs"))).come(makeTarget("again", of("rs"))),
			goes:   []types.UID{"again"},
		},
		"a pod of another controller is evicted": {
			script: begin(t, old).leave(old).come(makeTarget("late", of("another"), tolerant)),
			goes:   []types.UID{"late"},
		},
		"a pod without a controller is evicted": {
			script: begin(t, makeTarget("bare")).leave(makeTarget("bare")).come(makeTarget("late", tolerant)),
			goes:   []types.UID{"late"},
		},
		"a pod from before the drain is evicted after another pod of its controller": {
			script: begin(t, makeTarget("a", of("rs"), tolerant), fresh).leave(makeTarget("a", of("rs"))),
			goes:   []types.UID{"fresh"},
		},
		"a pod from before the drain is evicted once no rule skips it": {
			script: begin(t, old, makeTarget("fresh", of("rs"), tolerant, action(v1alpha1.DrainSkip))).leave(old).come(fresh),
			goes:   []types.UID{"fresh"},
		},
		"a new pod is evicted while its controller's others are still there": {
			script: begin(t, old).sent("old").answered(0, no, "old").come(fresh),
			goes:   []types.UID{"fresh"},
			waits:  []Pod{recent(blockedPod("old", "EvictionBlocked", no.message))},
		},
		"a new pod is evicted if its controller's others left by themselves": {
			script: begin(t, old).gone("old").come(fresh),
			goes:   []types.UID{"fresh"},
		},
		"a replacement under a rule with action Delete stays": {
			script: begin(t, old).leave(old).come(makeTarget("fresh", of("rs"), tolerant, action(v1alpha1.DrainDelete))),
			back:   []Pod{back("fresh", comesBackTolerant)},
		},
		"a replacement under a rule with action WaitCompleted is waited for": {
			script: begin(t, old).leave(old).come(makeTarget("fresh", of("rs"), tolerant, action(v1alpha1.DrainWaitCompleted))),
			waits:  []Pod{blockedPod("fresh", "WaitCompleted", "a rule waits until it has completed")},
		},
		"a replacement that the policy keeps on the node blocks the drain": {
			script: begin(t, old).leave(old).come(makeTarget("fresh", of("rs"), tolerant, keeps("emptyDir"))),
			waits:  []Pod{blockedPod("fresh", "UndrainablePod", "emptyDir")},
		},
		"a replacement that keeps its node blocks the drain": {
			script: begin(t, old).leave(old).come(makeTarget("fresh", of("rs"), tolerant, blocking)),
			waits:  []Pod{blockedPod("fresh", "UndrainablePod", blockerMessage)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.script
			goes, _ := s.goes(0)
			if diff := cmp.Diff(tc.goes, goes); diff != "" {
				t.Errorf("to leave (-want +got):\n%s", diff)
			}
			got := s.p.status(at(0))
			if diff := cmp.Diff([][]Pod{tc.back, tc.waits}, [][]Pod{got.Back, got.Blocked}); diff != "" {
				t.Errorf("back and blocked (-want +got):\n%s", diff)
			}
			if want := len(tc.goes)+len(tc.waits) == 0; s.p.done(at(60)) != want {
				t.Errorf("done = %v, want %v", !want, want)
			}
		})
	}
}

// The reboot does not wait for the volumes of a pod that stays.
func TestComebacks_KeepTheirVolumes(t *testing.T) {
	old, disk := makeTarget("old", of("rs")), []volume.Use{{Name: "disk"}}
	fresh := makeTarget("fresh", of("rs"), tolerant)
	fresh.volumes = disk
	if diff := cmp.Diff(disk, begin(t, old).leave(old).come(fresh).p.status(at(0)).Volumes); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
}

// TestLate shows that a pod which appears during a drain and must not be disrupted is not evicted,
// and that the drain waits for it.
func TestLate(t *testing.T) {
	old, migration := makeTarget("old", of("rs")), makeTarget("migration", of("job"), blocking)
	everywhere := makeTarget("migration", of("ds"), action(v1alpha1.DrainSkip), blocking)
	completed := makeTarget("migration", of("job"), action(v1alpha1.DrainSkip))
	waits := []Pod{blockedPod("migration", "UndrainablePod", blockerMessage)}
	for name, tc := range map[string]struct {
		script *script
		goes   []types.UID
		waits  []Pod
	}{
		"it comes": {
			script: begin(t, old).come(migration),
			goes:   []types.UID{"old"}, waits: waits,
		},
		"it changes": {
			script: begin(t, old).come(migration, migration),
			goes:   []types.UID{"old"}, waits: waits,
		},
		"a new LIST shows it": {
			script: begin(t, old).lists(old, migration),
			goes:   []types.UID{"old"}, waits: waits,
		},
		"it belongs to a DaemonSet": {
			script: begin(t, old).come(everywhere),
			goes:   []types.UID{"old"}, waits: waits,
		},
		"a rule waits for it": {
			script: begin(t, old).come(makeTarget("migration", blocking, action(v1alpha1.DrainWaitCompleted))),
			goes:   []types.UID{"old"}, waits: []Pod{blockedPod("migration", "WaitCompleted", "a rule waits until it has completed")},
		},
		"it has completed": {
			script: begin(t, old).come(migration, completed),
			goes:   []types.UID{"old"},
		},
		"somebody else is deleting it": {
			script: begin(t, old).come(migration, makeTarget("migration", blocking, deleted(10))),
			goes:   []types.UID{"old"},
		},
		"gates.blockingPods selects it only now, and it existed before": {
			script: begin(t, old).come(makeTarget("old", of("rs"), blocking)),
			goes:   []types.UID{"old"},
		},
		"gates.blockingPods selects it only after it appeared": {
			script: begin(t, old).come(makeTarget("migration"), migration),
			goes:   []types.UID{"migration", "old"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.script
			goes, _ := s.goes(0)
			if diff := cmp.Diff(tc.goes, goes); diff != "" {
				t.Errorf("to leave (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.waits, s.p.status(at(0)).Blocked); diff != "" {
				t.Errorf("blocked (-want +got):\n%s", diff)
			}
			if s.leave(old); len(tc.waits) > 0 && s.p.done(at(60)) {
				t.Error("done without it")
			}
		})
	}
}
