package drain

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/agent/volume"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var start = time.Unix(1_800_000_000, 0)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

// makeTarget returns pod "default/<name>" with UID <name>, which must be evicted.
func makeTarget(name string, changes ...func(*target)) target {
	t := target{
		NamespacedName: types.NamespacedName{Namespace: "default", Name: name},
		uid:            types.UID(name),
		labels:         map[string]string{"app": "web"},
		decision:       decision{action: v1alpha1.DrainEvict},
	}
	for _, change := range changes {
		change(&t)
	}
	return t
}

func order(n int32) func(*target) { return func(t *target) { t.decision.order = n } }

func action(a v1alpha1.DrainAction) func(*target) { return func(t *target) { t.decision.action = a } }

func keeps(why string) func(*target) { return func(t *target) { t.decision.undrainable = why } }

func deleted(seconds float64) func(*target) { return func(t *target) { t.deleted = at(seconds) } }

func quicker(t *target) { t.decision.gracePeriod = 5 }

func inNamespace(ns string) func(*target) { return func(t *target) { t.Namespace = ns } }

func isReady(t *target) { t.ready = true }

func app(value string) func(*target) {
	return func(t *target) { t.labels = map[string]string{"app": value} }
}

// web returns a budget for app=web, and api one for app=api.
func web(allowed int) budget {
	return budget{pods: labels.SelectorFromSet(labels.Set{"app": "web"}), allowed: allowed}
}

func api(allowed int) budget {
	return budget{pods: labels.SelectorFromSet(labels.Set{"app": "api"}), allowed: allowed}
}

var (
	webBudget = types.NamespacedName{Namespace: "default", Name: "web"}
	no        = answer{verdict: refused, message: "budget web refuses"}
	yes       = answer{verdict: accepted}
)

// script drives a progress; each step is a method that returns the script.
type script struct {
	t *testing.T
	p *progress
}

func begin(t *testing.T, pods ...target) *script {
	t.Helper()
	p := newProgress()
	p.replace(pods)
	return &script{t, p}
}

func (s *script) sent(uids ...types.UID) *script {
	for _, uid := range uids {
		s.p.sent(uid, at(0))
	}
	return s
}

func (s *script) answered(now float64, a answer, uids ...types.UID) *script {
	s.t.Helper()
	for _, uid := range uids {
		if err := s.p.answered(uid, a, at(now), 0.5); err != nil {
			s.t.Fatal(err)
		}
	}
	return s
}

func (s *script) budget(now float64, b budget) *script {
	s.p.budgetChanged(webBudget, b, at(now))
	return s
}

// named adds another budget besides webBudget.
func (s *script) named(name string, b budget) *script {
	s.p.budgetChanged(types.NamespacedName{Namespace: webBudget.Namespace, Name: name}, b, at(0))
	return s
}

// goes returns the pods to request at a time, and the time at which the drain has to run again.
func (s *script) goes(now float64) (uids []types.UID, wake time.Time) {
	send, wake := s.p.next(at(now))
	for _, t := range send {
		uids = append(uids, t.uid)
	}
	return uids, wake
}

// next checks the pods to request at a time, and the time at which the drain has to run again, or 0
// for none.
func (s *script) next(now, wake float64, uids ...types.UID) *script {
	s.t.Helper()
	got, gotWake := s.goes(now)
	if diff := cmp.Diff(uids, got); diff != "" {
		s.t.Errorf("to send at %vs (-want +got):\n%s", now, diff)
	}
	var wantWake time.Time
	if wake != 0 {
		wantWake = at(wake)
	}
	if !gotWake.Equal(wantWake) {
		s.t.Errorf("wake at %vs = %v, want %v", now, gotWake.Sub(start), wantWake.Sub(start))
	}
	return s
}

func TestNext(t *testing.T) {
	t.Run("all pods of one order go together, by name", func(t *testing.T) {
		begin(t, makeTarget("b"), makeTarget("a"), makeTarget("c", inNamespace("another"))).next(0, 0, "c", "a", "b")
	})
	t.Run("at most ten requests are under way", func(t *testing.T) {
		var pods []target
		var uids []types.UID
		for i := range 25 {
			pods = append(pods, makeTarget(fmt.Sprintf("p%02d", i)))
			uids = append(uids, types.UID(pods[i].Name))
		}
		s := begin(t, pods...).next(0, 0, uids[:10]...).sent(uids[:10]...).next(0, 0)
		s.answered(0, yes, uids[3], uids[5]).next(0, 0, uids[10:12]...)
	})
	t.Run("lower order first, the next only when it is gone", func(t *testing.T) {
		s := begin(t, makeTarget("db", order(10)), makeTarget("web"), makeTarget("first", order(-5)))
		s.next(0, 0, "first").sent("first").next(0, 0).answered(0, yes, "first").next(0, 0)
		s.p.put(makeTarget("first", order(-5), deleted(30)))
		s.next(0, 60).p.remove("first")
		s.next(0, 0, "web").p.remove("web")
		s.next(0, 0, "db")
	})
	t.Run("a completed pod of a lower order lets the next go", func(t *testing.T) {
		s := begin(t, makeTarget("batch", order(-1), action(v1alpha1.DrainWaitCompleted)), makeTarget("web"))
		s.next(0, 0).p.put(makeTarget("batch", action(v1alpha1.DrainSkip)))
		s.next(0, 0, "web")
	})
	t.Run("a new pod of a lower order comes first", func(t *testing.T) {
		s := begin(t, makeTarget("db", order(10))).next(0, 0, "db")
		s.p.put(makeTarget("late"))
		s.next(0, 0, "late")
	})
	t.Run("terminating, accepted, waited for and undrainable pods are not evicted", func(t *testing.T) {
		s := begin(t, makeTarget("a", deleted(100)), makeTarget("b"), makeTarget("c", action(v1alpha1.DrainWaitCompleted)),
			makeTarget("d", keeps("bare")))
		s.sent("b").answered(0, yes, "b").next(0, 130)
	})
	t.Run("a terminating pod is evicted once more to end sooner", func(t *testing.T) {
		s := begin(t, makeTarget("a", deleted(600), quicker)).next(0, 630, "a").sent("a").answered(0, yes, "a").next(0, 630)
		s.p.put(makeTarget("a", deleted(5)))
		s.next(0, 35)
	})
	t.Run("a pod that terminates by itself is not evicted again", func(t *testing.T) {
		s := begin(t, makeTarget("a")).sent("a").answered(0, answer{verdict: failed, message: "timeout"}, "a").next(0, 1)
		s.p.put(makeTarget("a", deleted(5)))
		s.next(1, 35)
	})
	t.Run("a pod whose UID the watch no longer shows is not evicted again", func(t *testing.T) {
		s := begin(t, makeTarget("a"), makeTarget("b", action(v1alpha1.DrainWaitCompleted))).sent("a")
		s.p.remove("a")
		s.answered(0, no, "a").next(10, 0)
	})
	t.Run("pods without an answer come before refused ones", func(t *testing.T) {
		s := begin(t, makeTarget("a"), makeTarget("b")).sent("a").answered(0, no, "a")
		s.next(2, 0, "b", "a")
	})
	t.Run("a request whose pod is gone still uses a slot", func(t *testing.T) {
		var pods []target
		for i := range 11 {
			pods = append(pods, makeTarget(fmt.Sprintf("p%02d", i)))
		}
		s := begin(t, pods...)
		for _, p := range pods[:10] {
			s.sent(p.uid)
		}
		s.p.remove("p00")
		s.next(0, 0).answered(0, yes, "p00").next(0, 0, "p10")
	})
	t.Run("pods that wait for a free slot are not woken", func(t *testing.T) {
		var pods []target
		for i := range 11 {
			pods = append(pods, makeTarget(fmt.Sprintf("p%02d", i)))
		}
		s := begin(t, pods...)
		for _, p := range pods[:10] {
			s.sent(p.uid)
		}
		s.next(0, 0)
	})
}

func TestDone(t *testing.T) {
	isDone := func(t *testing.T, s *script, now float64, want bool) {
		t.Helper()
		if got := s.p.done(at(now)); got != want {
			t.Errorf("done at %vs = %v, want %v", now, got, want)
		}
	}
	t.Run("not finished before the first LIST", func(t *testing.T) { isDone(t, &script{t, newProgress()}, 0, false) })
	t.Run("finished with no pod that must go", func(t *testing.T) {
		isDone(t, begin(t, makeTarget("a", action(v1alpha1.DrainSkip))), 0, true)
	})
	t.Run("not finished with a pod that must go", func(t *testing.T) { isDone(t, begin(t, makeTarget("a")), 0, false) })
	t.Run("an answer that is late is waited for, but not for long", func(t *testing.T) {
		s := begin(t, makeTarget("a")).sent("a")
		s.p.remove("a")
		s.next(0, 2)
		isDone(t, s, 1.9, false)
		isDone(t, s, 2, true)
		s.answered(1, yes, "a")
		isDone(t, s, 1, true)
	})
}

// Once the pods have been read, they stay known even if they cannot be read again.
func TestUnreadable(t *testing.T) {
	p := newProgress()
	p.unreadable(errors.New("too busy"))
	if got := p.status(start); !reflect.DeepEqual(got, Status{Unread: "too busy", Left: []Pod{}}) {
		t.Errorf("before the first LIST: %+v", got)
	}
	p.replace([]target{makeTarget("web")})
	p.unreadable(errors.New("too busy again"))
	if got := p.status(start); !reflect.DeepEqual(got, Status{Remaining: 1, Left: []Pod{blockedPod("web", "", "")}}) {
		t.Errorf("after it: %+v", got)
	}
}

func TestAnswered_Delays(t *testing.T) {
	cases := map[string]struct {
		answers []answer
		want    time.Duration
	}{
		"behaviour 38: a refusal is tried again after a second": {answers: []answer{no}, want: time.Second},
		"repeated refusals double the wait":                     {answers: []answer{no, no, no}, want: 4 * time.Second},
		"repeated refusals wait at most half a minute":          {answers: slices.Repeat([]answer{no}, 20), want: 30 * time.Second},
		"a 404 is tried again, in case the watch still shows it": {
			answers: []answer{{verdict: gone}}, want: time.Second,
		},
		"a pod in a terminating namespace is tried again": {answers: []answer{{verdict: leaving}}, want: time.Second},
		"a failure is tried again":                        {answers: []answer{{verdict: failed}}, want: time.Second},
		"Retry-After counts":                              {answers: []answer{{verdict: failed, retryAfter: 7 * time.Second}}, want: 7 * time.Second},
		"Retry-After of a load balancer":                  {answers: []answer{{verdict: failed, retryAfter: time.Hour}}, want: 30 * time.Second},
		"several budgets need a person":                   {answers: []answer{{verdict: crowded}}, want: 30 * time.Second},
		"two denials may be a lagging cache":              {answers: []answer{{verdict: denied}, {verdict: denied}}, want: 2 * time.Second},
		"another answer resets the count of denials": {
			answers: []answer{{verdict: denied}, {verdict: denied}, {verdict: failed}, {verdict: denied}}, want: 8 * time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := begin(t, makeTarget("a"))
			for _, a := range tc.answers {
				s.sent("a").answered(0, a, "a")
			}
			s.next(0, tc.want.Seconds()).next(tc.want.Seconds(), 0, "a")
		})
	}
}

// A pod that a rule with action Delete removes is counted once, whether the response or the end of
// the pod arrives first.
func TestTook(t *testing.T) {
	leaving, going, evicted := makeTarget("left", action(v1alpha1.DrainDelete)), makeTarget("going", action(v1alpha1.DrainDelete)), makeTarget("evicted")
	no := makeTarget("refused", action(v1alpha1.DrainDelete))
	s := begin(t, leaving, going, evicted, no)
	s.p.remove("left")
	for _, a := range []target{leaving, going, going, evicted} {
		s.p.took(a, accepted)
	}
	s.p.took(no, failed)
	if got := s.p.status(at(0)); got.Deleted != 2 || got.Deleting != 1 || got.Remaining != 3 {
		t.Errorf("status %+v", got)
	}
}

func TestAnswered_Errors(t *testing.T) {
	cases := map[string]struct {
		answers []answer
		want    string
	}{
		"behaviour 40: a third denial ends the drain": {
			answers: slices.Repeat([]answer{{verdict: denied, message: "forbidden: no"}}, 3),
			want:    `evicting pod "default/a": forbidden: no`,
		},
		"an answer that stays the same ends it at once": {
			answers: []answer{{verdict: fatal, message: "who are you"}}, want: `evicting pod "default/a": who are you`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := begin(t, makeTarget("a"))
			var err error
			for i, a := range tc.answers {
				s.sent("a")
				if err = s.p.answered("a", a, at(0), 0.5); err != nil && i < len(tc.answers)-1 {
					t.Fatalf("answer %d: %v", i, err)
				}
			}
			if err == nil || err.Error() != tc.want {
				t.Errorf("error = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestUses(t *testing.T) {
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: claim}}}}
	if diff := cmp.Diff([]volume.Use{makeUse("data")}, uses(pod)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	pod.Status.Phase = corev1.PodSucceeded
	if got := uses(pod); got != nil {
		t.Errorf("uses = %v of a pod that has completed, want none", got)
	}
}

// Only volumes of pods that stay may remain in use.
func TestKept(t *testing.T) {
	p := newProgress()
	stays := target{uid: "stays", volumes: []volume.Use{makeUse("c"), makeUse("b")}, decision: decision{action: v1alpha1.DrainSkip}}
	goes := target{uid: "goes", volumes: []volume.Use{makeUse("gone")}, decision: decision{action: v1alpha1.DrainEvict}}
	p.replace([]target{stays, goes})
	expect := func(when string, names ...string) {
		t.Helper()
		var want []volume.Use
		for _, name := range names {
			want = append(want, makeUse(name))
		}
		if diff := cmp.Diff(want, p.staying.list()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	expect("at first", "b", "c")
	p.put(target{uid: "late", volumes: []volume.Use{makeUse("b"), makeUse("a")}, decision: decision{action: v1alpha1.DrainSkip}})
	expect("with a late one, which shares a volume", "a", "b", "c")
	p.remove(types.UID("late"))
	expect("when it is gone", "b", "c")
	p.replace([]target{goes})
	expect("after a LIST without it")
}

func makeUse(claim string) volume.Use {
	return volume.Use{Claim: types.NamespacedName{Name: claim}}
}

// A tenant may create thousands of PodDisruptionBudgets with large selectors.
func TestBudgets_KeepLittleOfThoseOfANamespace(t *testing.T) {
	const size = 16 << 10
	tenant := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: "tenant", Name: strconv.Itoa(i)}
	}
	b, large := newBudgets(), budget{pods: labels.Everything(), size: size}
	for i := range 1000 {
		b.set(tenant(i), large)
	}
	if len(b.known) != maxBudgets/size {
		t.Errorf("%d budgets are known", len(b.known))
	}
	other := types.NamespacedName{Namespace: "b", Name: "web"}
	b.set(other, large)
	b.set(tenant(0), budget{})
	b.set(tenant(2000), large)
	for _, name := range []types.NamespacedName{other, tenant(2000)} {
		if _, known := b.known[name]; !known {
			t.Errorf("%s is not known", name)
		}
	}
	if b.forget("tenant"); len(b.known) != 1 || b.sizes["tenant"] != 0 {
		t.Errorf("%d budgets are left, and %d bytes", len(b.known), b.sizes["tenant"])
	}
}
