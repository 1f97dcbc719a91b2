package reboot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// looker is a fake Looker with the given findings.
type looker struct {
	// mu guards the other fields, which a test may change during Follow.
	mu    sync.Mutex
	finds drain.Findings
	err   error
	// asked are the requests so far.
	asked []drain.PodRules
	// news are further findings of Follow.
	news chan drain.Findings
	// late holds the findings of Follow while it ends. slow delays its first findings until it is
	// closed. Both may be nil.
	late *drain.Findings
	slow chan struct{}
}

func (l *looker) Look(_ context.Context, _ string, q drain.PodRules) (drain.Findings, error) {
	return l.answer(q)
}

func (l *looker) answer(q drain.PodRules) (drain.Findings, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, q)
	return l.finds, l.err
}

func (l *looker) becomes(finds drain.Findings, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finds, l.err = finds, err
}

func (l *looker) Follow(ctx context.Context, _ string, q drain.PodRules, report func(drain.Findings)) error {
	finds, err := l.answer(q)
	if err != nil {
		return err
	}
	if l.slow != nil {
		select {
		case <-l.slow:
		case <-ctx.Done():
		}
	}
	report(finds)
	for {
		select {
		case f := <-l.news:
			report(f)
		case <-ctx.Done():
			if l.late != nil {
				report(*l.late)
			}
			return ctx.Err()
		}
	}
}

func somePod(name string) []drain.Pod {
	return []drain.Pod{{Namespace: "default", Name: name, Message: "why"}}
}

// asked is the manager's request in these tests.
var asked = protocol.Preflight{Policy: "workers", Revision: "r1"}

// Findings of a check, and the resulting Look.
var (
	migrates, protects = drain.Findings{Blocking: somePod("migrate-1")}, drain.Findings{Guarded: somePod("db-0")}

	migration = step.Look{Gated: true, Blocking: drain.Named(migrates.Blocking)}
	nothing   = step.Look{Gated: true}
	protected = step.Look{Guarded: drain.Named(protects.Guarded)}
)

// onLookout runs a test with a started lookout.
func onLookout(t *testing.T, name string, test func(t *testing.T, l *lookout, f *looker, api *apiServer)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f, api := &looker{news: make(chan drain.Findings)}, &apiServer{policy: &v1alpha1.RebootPolicy{}}
			l := newLookout("n1", f, api, clock.RealClock{}, newWake("n1"))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- l.Start(ctx) }()
			test(t, l, f, api)
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Start: %v", err)
			}
		})
	})
}

func (l *lookout) mustAsk(t *testing.T, request *protocol.Preflight) {
	t.Helper()
	if err := l.ask(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func (l *lookout) mustKnow(t *testing.T, request protocol.Preflight, want step.Look) {
	t.Helper()
	synctest.Wait()
	got := l.of(&request)
	got.At = want.At
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// mustBeOver fails the test if a check is still running.
func (l *looker) mustBeOver(t *testing.T) {
	t.Helper()
	select {
	case l.news <- protects:
		t.Error("somebody still looks")
	default:
	}
}

func TestLookout(t *testing.T) {
	onLookout(t, "one request causes one read of the policy and one look, however often it is passed", func(t *testing.T, l *lookout, f *looker, api *apiServer) {
		t.Helper()
		api.policy.Spec.Gates = &v1alpha1.Gates{BlockingPods: []v1alpha1.BlockingPod{{}}}
		l.mustAsk(t, &asked)
		l.mustKnow(t, asked, nothing)
		f.news <- migrates
		l.mustKnow(t, asked, migration)
		l.mustAsk(t, &asked)
		l.mustKnow(t, asked, migration)
		if len(f.asked) != 1 || api.policyReads != 1 || len(f.asked[0].Blocking) != 1 {
			t.Errorf("looked for %v, and read the policy %d times", f.asked, api.policyReads)
		}
	})
	onLookout(t, "another request causes another look", func(t *testing.T, l *lookout, f *looker, api *apiServer) {
		t.Helper()
		f.finds = protects
		l.mustAsk(t, &asked)
		other := protocol.Preflight{Policy: "workers", Revision: "r2"}
		l.mustKnow(t, other, step.Look{})
		f.finds = drain.Findings{}
		l.mustAsk(t, &other)
		l.mustKnow(t, other, step.Look{})
		l.mustKnow(t, asked, step.Look{})
		if len(f.asked) != 2 || api.policyReads != 2 {
			t.Errorf("looked %d times, and read the policy %d times", len(f.asked), api.policyReads)
		}
	})
	onLookout(t, "findings of the previous look do not answer another request", func(t *testing.T, l *lookout, f *looker, _ *apiServer) {
		t.Helper()
		l.mustAsk(t, &asked)
		other := protocol.Preflight{Policy: "workers", Revision: "r2"}
		f.late, f.slow = &protects, make(chan struct{})
		l.mustAsk(t, &other)
		l.mustKnow(t, other, step.Look{})
		close(f.slow)
		l.mustKnow(t, other, step.Look{})
	})
	onLookout(t, "the look ends with the request", func(t *testing.T, l *lookout, f *looker, _ *apiServer) {
		t.Helper()
		l.mustAsk(t, nil)
		l.mustAsk(t, &asked)
		l.mustAsk(t, nil)
		f.mustBeOver(t)
		l.mustKnow(t, asked, step.Look{})
	})
	onLookout(t, "the look ends if the order to end it succeeds at the second try", func(t *testing.T, l *lookout, f *looker, _ *apiServer) {
		t.Helper()
		late, cancel := context.WithCancel(t.Context())
		cancel()
		for err := error(nil); err == nil; err = l.ask(late, nil) { // The order may be accepted in spite of that.
			l.mustAsk(t, &asked)
		}
		l.mustAsk(t, nil)
		f.mustBeOver(t)
	})
	onLookout(t, "a look that fails is reported, and tried again", func(t *testing.T, l *lookout, f *looker, _ *apiServer) {
		t.Helper()
		f.err = errAPI
		l.mustAsk(t, &asked)
		l.mustKnow(t, asked, step.Look{Problem: "the API server is away"})
		f.becomes(protects, nil)
		<-time.After(step.LookRetry)
		l.mustKnow(t, asked, protected)
	})
	onLookout(t, "a policy that cannot be read may have gates", func(t *testing.T, l *lookout, f *looker, api *apiServer) {
		t.Helper()
		api.policyErr = errAPI
		l.mustAsk(t, &asked)
		l.mustKnow(t, asked, step.Look{Gated: true, Problem: `reading policy "workers": the API server is away`})
		if len(f.asked) > 0 {
			t.Error("it looked under no policy")
		}
	})
	onLookout(t, "starts again after a direct look, which may have found what this one missed", func(t *testing.T, l *lookout, f *looker, _ *apiServer) {
		t.Helper()
		l.mustAsk(t, &asked)
		f.finds = protects
		l.once(t.Context(), step.Settings{})
		l.mustKnow(t, asked, step.Look{})
		l.mustAsk(t, &asked)
		l.mustKnow(t, asked, protected)
	})
	for name, finds := range map[string]drain.Findings{"nothing": {}, "what this one has found": protects} {
		onLookout(t, "goes on after a look of one's own that finds "+name, func(t *testing.T, l *lookout, f *looker, _ *apiServer) {
			t.Helper()
			f.finds = protects
			l.mustAsk(t, &asked)
			f.finds = finds
			l.once(t.Context(), step.Settings{})
			l.mustKnow(t, asked, protected)
		})
	}
	onLookout(t, "is tried again by itself after a direct look, if it has failed", func(t *testing.T, l *lookout, f *looker, _ *apiServer) {
		t.Helper()
		f.err = errAPI
		l.mustAsk(t, &asked)
		f.becomes(protects, nil)
		l.once(t.Context(), step.Settings{})
		l.mustKnow(t, asked, step.Look{Problem: "the API server is away"})
	})
}

// A granted node that is held up checks its pods, also in the background, and then waits.
func TestReconcile_RestsWhileItIsHeldUp(t *testing.T) {
	for name, finds := range map[string]drain.Findings{"nothing is in the way": {}, "a pod that does not prevent the drain": protects} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, api, logind := makeReconciler(t, granted())
				api.keeps, logind.inhibitors = true, []host.Inhibitor{{Who: "dpkg"}}
				r.lookout.looker.(*looker).finds = finds
				api.node.Annotations[v1alpha1.AnnotationPreflight] = asked.String()
				api.policy.Spec.Drain = &v1alpha1.Drain{OnTimeout: v1alpha1.DrainTimeoutReboot}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- r.lookout.Start(ctx) }()
				rounds := 0
				for ; rounds < 20 && len(r.Wake.triggers) > 0; rounds++ {
					<-r.Wake.triggers
					result, err := r.Reconcile(ctx, ctrl.Request{})
					if err != nil || result.RequeueAfter != 15*time.Second {
						t.Errorf("%v, %v", result, err)
					}
					synctest.Wait()
				}
				if rounds > 4 {
					t.Errorf("%d rounds without a pause", rounds)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestReconcile_ConfirmsTheNeed_Behaviour3 covers an engine that was reset without a signal. It is
// queried right before the drain begins.
func TestReconcile_ConfirmsTheNeed_Behaviour3(t *testing.T) {
	begins := func(api *apiServer) bool {
		return slices.ContainsFunc(api.patches, func(p string) bool { return strings.Contains(p, "unschedulable") })
	}
	answer := func(t *testing.T, r *Reconciler, state engine.State) {
		t.Helper()
		again, done := r.Reports.Again("e"), make(chan struct{})
		go func() {
			defer close(done)
			select {
			case look := <-again:
				r.Reports.Put(engine.Report{Engine: "e", State: state, Reason: v1alpha1.ReasonUpToDate, Message: "Asked."})
				look <- true
			case <-t.Context().Done():
			}
		}()
		t.Cleanup(func() { <-done })
	}
	grant := granted()
	t.Run("the engine has no need any more: that is written, and nothing begins", func(t *testing.T) {
		r, api, _ := makeReconciler(t, grant)
		answer(t, r, engine.NotNeeded)
		if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil {
			t.Fatal(err)
		}
		if begins(api) || len(api.patches) != 1 || !strings.Contains(api.patches[0], `"UpToDate"`) {
			t.Errorf("wrote %v", api.patches)
		}
	})
	t.Run("the engine still has a need: the drain begins", func(t *testing.T) {
		r, api, _ := makeReconciler(t, grant)
		answer(t, r, engine.Needed)
		if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil {
			t.Fatal(err)
		}
		if !begins(api) {
			t.Errorf("wrote %v", api.patches)
		}
	})
	t.Run("the engine does not respond for long: its earlier report counts", func(t *testing.T) {
		r, api, _ := makeReconciler(t, grant)
		clock := r.Clock.(*testclock.FakeClock)
		again := r.Reports.Again("e")
		answering, stop := context.WithCancel(t.Context())
		defer stop()
		go func() {
			for {
				select {
				case look := <-again:
					look <- false
				case <-answering.Done():
					return
				}
			}
		}()
		for passed := range 4 {
			result, err := r.Reconcile(t.Context(), ctrl.Request{})
			if err != nil || begins(api) || result.RequeueAfter != 30*time.Second {
				t.Fatalf("after %d half minutes: %v, %v, wrote %v", passed, result, err, api.patches)
			}
			clock.Step(30 * time.Second)
		}
		if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || !begins(api) {
			t.Errorf("%v, wrote %v", err, api.patches)
		}
	})
	t.Run("the engine has responded in between: the wait starts again", func(t *testing.T) {
		r, _, _ := makeReconciler(t, grant)
		clock, again := r.Clock.(*testclock.FakeClock), r.Reports.Again("e")
		var got []time.Duration
		for _, answers := range []bool{false, false, true, false} {
			go func() { (<-again) <- answers }()
			if since := r.observer.confirm(t.Context(), grantID{"p", 1}); !since.IsZero() {
				got = append(got, clock.Now().Sub(since))
			}
			clock.Step(time.Minute)
		}
		if diff := cmp.Diff([]time.Duration{0, time.Minute, 0}, got); diff != "" {
			t.Errorf("unanswered for (-want +got):\n%s", diff)
		}
	})
	t.Run("the engine does not respond: nothing begins, and it is queried again", func(t *testing.T) {
		r, api, _ := makeReconciler(t, grant)
		r.Reports.Again("e")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		result, err := r.Reconcile(ctx, ctrl.Request{})
		if err != nil || begins(api) || result.RequeueAfter != 30*time.Second {
			t.Errorf("%v, %v, wrote %v", result, err, api.patches)
		}
	})
}

// TestReconcile_StartLook shows that the agent checks the pods again when it may begin, whatever
// was found before. It does not while it may not begin, or has just found something.
func TestReconcile_StartLook(t *testing.T) {
	grant := granted()
	reconcile := func(t *testing.T, r *Reconciler) ctrl.Result {
		t.Helper()
		result, err := r.Reconcile(t.Context(), ctrl.Request{})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	t.Run("nothing is in the way", func(t *testing.T) {
		r, api, _ := makeReconciler(t, grant)
		reconcile(t, r)
		if f := r.lookout.looker.(*looker); len(f.asked) != 1 || len(api.patches) != 1 || !strings.Contains(api.patches[0], "unschedulable") {
			t.Errorf("looked %d times, and wrote %v", len(f.asked), api.patches)
		}
	})
	t.Run("a pod is in the way: nothing begins, and the next look is after half a minute", func(t *testing.T) {
		r, api, _ := makeReconciler(t, grant)
		f := r.lookout.looker.(*looker)
		f.finds = drain.Findings{Kept: somePod("bare")}
		for range 3 {
			if result := reconcile(t, r); result.RequeueAfter != step.LookRetry {
				t.Errorf("again after %s", result.RequeueAfter)
			}
		}
		r.Clock.(*testclock.FakeClock).SetTime(now.Add(step.LookRetry))
		f.finds = drain.Findings{}
		reconcile(t, r)
		if len(f.asked) != 2 || len(api.patches) != 1 || !strings.Contains(api.patches[0], "unschedulable") {
			t.Errorf("looked %d times, and wrote %v", len(f.asked), api.patches)
		}
	})
	t.Run("a refused write is not repeated without another look", func(t *testing.T) {
		r, api, _ := makeReconciler(t, grant)
		api.patchErr = conflict
		reconcile(t, r)
		f := r.lookout.looker.(*looker)
		f.finds, api.patchErr = migrates, nil
		reconcile(t, r)
		if len(f.asked) != 2 || len(api.patches) != 1 {
			t.Errorf("looked %d times, and wrote %v", len(f.asked), api.patches)
		}
	})
	t.Run("a node that may not begin does not look", func(t *testing.T) {
		for name, change := range map[string]func(*apiServer){
			"paused":    func(api *apiServer) { api.node.Annotations[v1alpha1.AnnotationPaused] = "true" },
			"no policy": func(api *apiServer) { api.policyErr = errAPI },
			"other boot": func(api *apiServer) {
				api.node.Annotations[v1alpha1.AnnotationGrant] = makeGrant(1, active, otherBoot).String()
			},
			"not in the ledger": func(api *apiServer) { api.policy.Status.Grants = nil },
			"no progress":       func(api *apiServer) { api.node.Annotations[v1alpha1.AnnotationProgress] = "?" },
		} {
			r, api, _ := makeReconciler(t, grant)
			change(api)
			reconcile(t, r)
			if f := r.lookout.looker.(*looker); len(f.asked) > 0 {
				t.Errorf("%s: it looked", name)
			}
		}
	})
}

// TestLook_Report shows that the manager can read every answer, for any names and numbers of pods.
func TestLook_Report(t *testing.T) {
	var pods []drain.Pod
	for i := range 300 {
		pods = append(pods, drain.Pod{
			Namespace: strings.Repeat("n", 63), Name: fmt.Sprint(strings.Repeat("p", 250), i), Message: strings.Repeat("\x00\"ß", 1000),
		})
	}
	look := found(step.Settings{BlockingPods: []v1alpha1.BlockingPod{{}}}, now, drain.Findings{Blocking: pods, Kept: pods, Guarded: pods},
		errors.New(strings.Repeat("<\xff", 1000)))
	long := protocol.Blocker{Reason: v1alpha1.ReasonInhibited, Message: strings.Repeat("<", 512)}
	value := protocol.AgentReport{
		BlockedBy: []protocol.Blocker{long, long, long, long}, Preflight: look.Report(asked, strings.Repeat("b", 64)),
	}.String()
	read, err := protocol.ParseAgentReport(map[string]string{v1alpha1.AnnotationReport: value})
	if err != nil {
		t.Fatalf("%d bytes: %v", len(value), err)
	}
	r := read.Preflight
	if r.Kept.Count != 300 || len(r.Kept.Pods) != protocol.MaxNamedPods || len(r.Kept.Pods[0].Why) > protocol.MaxPodReasonBytes {
		t.Errorf("got %d of %d pods; %d bytes of why", len(r.Kept.Pods), r.Kept.Count, len(r.Kept.Pods[0].Why))
	}
}
