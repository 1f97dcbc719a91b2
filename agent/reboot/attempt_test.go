package reboot

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// TestReconcile_KnowsNothingOfANewAttempt shows that a new attempt does not use what is known of an
// old one with the same number. Numbers start again with a new policy or a new Node. The write may
// have succeeded although its reply was lost.
func TestReconcile_KnowsNothingOfANewAttempt(t *testing.T) {
	for name, patchErr := range map[string]error{"begun": nil, "begun, and the answer is lost": errAPI} {
		t.Run(name, func(t *testing.T) {
			r, api, _ := makeReconciler(t, granted())
			r.drains.last = attempt{seq: 1, Drain: step.Drain{State: step.DrainDone, Deleted: 3}}
			r.observer.call = call{seq: 1, Call: step.Call{AcceptedAt: now}}
			r.observer.claims = claims{seq: 1, names: map[types.NamespacedName]corev1.UniqueVolumeName{{Name: "disk"}: "old"}}
			api.patchErr = patchErr
			if _, err := r.Reconcile(t.Context(), ctrl.Request{}); !errors.Is(err, patchErr) || len(api.patches) != 1 {
				t.Fatalf("error %v, patches %q", err, api.patches)
			}
			if diff := cmp.Diff(step.Drain{}, r.drains.of(1).Drain); diff != "" || r.observer.call != (call{}) || r.observer.claims.names != nil {
				t.Errorf("knows of call %+v, claims %v, drain (-want +got):\n%s", r.observer.call, r.observer.claims, diff)
			}
		})
	}
}

// TestReconcile_RemembersWhenItBeganADrain shows that the time comes from the monotonic clock,
// which String prints, and counts only for this drain.
func TestReconcile_RemembersWhenItBeganADrain(t *testing.T) {
	r, api, _ := makeReconciler(t, granted())
	r.change(func(c *Config) { c.Clock = clock.RealClock{} })
	before := r.Clock.Now()
	if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || len(api.patches) != 1 {
		t.Fatalf("error %v, patches %q", err, api.patches)
	}
	api.node.Annotations[v1alpha1.AnnotationProgress] = r.observer.sighting.progress
	o, err := r.observer.observe(t.Context(), api.node)
	if err != nil || !o.InPhase(drainingPhase) || !o.Began || o.SeenAt.Before(before) || !strings.Contains(o.SeenAt.String(), " m=+") {
		t.Errorf("error %v, progress %v begun %t at %s", err, o.Record.Progress, o.Began, o.SeenAt)
	}
	api.node.Annotations[v1alpha1.AnnotationProgress] = makeProgress(1, drainingPhase, boot).String()
	if o, err := r.observer.observe(t.Context(), api.node); err != nil || o.Began {
		t.Errorf("error %v, began a drain that another process began, at %s", err, o.SeenAt)
	}
}

// TestReconcile_CountsADrainFromNowIfTheClockWasSetBack covers a drain whose process
// has died. Its recorded time is an hour ahead, so the drain would otherwise begin and time out an
// hour late.
func TestReconcile_CountsADrainFromNowIfTheClockWasSetBack(t *testing.T) {
	ahead := makeProgress(1, drainingPhase, boot)
	ahead.At = metav1.NewTime(now.Add(time.Hour))
	r, api, _ := makeReconciler(t, protocol.Record{Grant: makeGrant(1, active, boot), Progress: ahead})
	for range 2 {
		if o := r.observed(t, api.node); !o.SeenAt.Equal(now) {
			t.Errorf("at %s: seen at %s", o.Now, o.SeenAt)
		}
		r.Clock.(*testclock.FakeClock).Step(time.Minute)
	}
}

// TestReconcile_GivesNoDrainUpByAPolicyThatItHasNotRead covers a drain that an earlier process
// began. Its policy may allow more time than the default. The wait still ends.
func TestReconcile_GivesNoDrainUpByAPolicyThatItHasNotRead(t *testing.T) {
	r, api, _ := makeReconciler(t, inPhase(drainingPhase))
	clock := r.Clock.(*testclock.FakeClock)
	clock.SetTime(begun.Add(time.Hour))
	api.policyErr = errAPI
	for _, want := range []step.Step{step.Wait{Until: clock.Now().Add(30 * time.Second)}, step.AbortDrain{}} {
		got := step.Next(r.observed(t, api.node))
		if _, aborts := got.(step.AbortDrain); aborts {
			got = step.AbortDrain{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", clock.Now(), diff)
		}
		clock.Step(20 * time.Minute)
	}
}

// TestReconcile_ReportsWhichPodsStay shows that a drain is done if only pods that come back are
// left, and that its event names them.
func TestReconcile_ReportsWhichPodsStay(t *testing.T) {
	cases := map[string]struct{ staying, want string }{
		"none came back": {"", "Normal Drained drained (number 1)"},
		"one did":        {"staying: a/b (why)", "Normal Drained drained (number 1); staying: a/b (why)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, api, _ := makeReconciler(t, inPhase(drainingPhase))
			r.drains.last = attempt{seq: 1, Drain: step.Drain{State: step.DrainDone, DoneAt: now, LeftAt: now, Staying: tc.staying}}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || len(api.patches) != 1 {
				t.Fatalf("error %v, patches %q", err, api.patches)
			}
			if diff := cmp.Diff([]string{tc.want}, r.announcer.emitted()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReconcile_EndsADrainRegardlessThoughAWriteFailed shows that the pods which were left when the
// drain was stopped for the first write count for the second write, too.
func TestReconcile_EndsADrainRegardlessThoughAWriteFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, d *drains, f *fakeDrainer) {
		t.Helper()
		r, api, _ := makeReconciler(t, inPhase(drainingPhase))
		r.change(func(c *Config) { c.Clock = testclock.NewFakeClock(begun.Add(20 * time.Minute)) })
		r.drainBy(d)
		api.policy.Spec.Drain = &v1alpha1.Drain{OnTimeout: v1alpha1.DrainTimeoutReboot}
		f.statuses = []drain.Status{{Remaining: 2}}
		d.mustRun(t, 1)
		for _, api.patchErr = range []error{conflict, errAPI, nil} {
			_, _ = r.Reconcile(t.Context(), ctrl.Request{})
			last := api.patches[len(api.patches)-1]
			for _, part := range []string{`\"phase\":\"Rebooting\"`, `\"podsForced\":2`, `2 pods are left on the node`} {
				if !strings.Contains(last, part) {
					t.Errorf("after %v: no %s in %s", api.patchErr, part, last)
				}
			}
		}
	})
}
