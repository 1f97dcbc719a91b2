package reboot

import (
	stdcmp "cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

// apiServer is a fake API server with a Node and a policy, which may return errors.
type apiServer struct {
	client.Client
	node   *corev1.Node
	policy *v1alpha1.RebootPolicy
	// limiting is a policy of another name, or nil.
	limiting *v1alpha1.RebootPolicy
	// getErr and patchErr are returned if they are set, and policyErr is returned for reads of the
	// policy.
	getErr, patchErr, policyErr error
	// outruns is the number of patches before which somebody else writes the Node. meddle is that
	// write, and nil is a heartbeat.
	outruns int
	meddle  func(*corev1.Node)
	// keeps reports whether patches change the Node for good. mutates is a mutating admission policy,
	// or nil.
	keeps   bool
	mutates func(*corev1.Node)
	// patches are all patches so far, by subresource.
	patches []string
	// policyReads counts the reads of the policy.
	policyReads int
}

func (a *apiServer) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if policy, ok := object.(*v1alpha1.RebootPolicy); ok {
		a.policyReads++
		if key.Name == "limiting" {
			if a.limiting == nil {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			a.limiting.DeepCopyInto(policy)
			return nil
		}
		if a.policyErr == nil {
			a.policy.DeepCopyInto(policy)
		}
		return a.policyErr
	}
	if a.getErr == nil {
		a.node.DeepCopyInto(object.(*corev1.Node))
	}
	return a.getErr
}

func (a *apiServer) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return a.patch("node", object, patch)
}

// patch records the patch and returns the next version of the Node.
func (a *apiServer) patch(action string, object client.Object, patch client.Patch) error {
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	a.patches = append(a.patches, action+" "+string(data))
	if a.patchErr != nil {
		return a.patchErr
	}
	if a.outruns > 0 {
		a.outruns--
		a.node.ResourceVersion += "1"
		if a.meddle != nil {
			a.meddle(a.node)
		}
		return conflict
	}
	after, err := a.patched(data)
	if err != nil {
		return err
	}
	if a.mutates != nil {
		a.mutates(after)
	}
	after.DeepCopyInto(object.(*corev1.Node))
	if a.keeps {
		a.node = after
		object.SetResourceVersion("11")
	}
	return nil
}

// patched returns the Node with a patch.
func (a *apiServer) patched(patch []byte) (*corev1.Node, error) {
	before, err := json.Marshal(a.node)
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Node{})
	if err != nil {
		return nil, err
	}
	node := &corev1.Node{}
	return node, json.Unmarshal(after, node)
}

func (a *apiServer) Status() client.SubResourceWriter { return statusWriter{apiServer: a} }

type statusWriter struct {
	client.SubResourceWriter
	*apiServer
}

func (s statusWriter) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.patch("status", object, patch)
}

// logind counts the calls to reboot.
type logind struct {
	// inhibitors block a shutdown.
	inhibitors []host.Inhibitor

	// refuses is the reason why it would refuse in any case.
	refuses string
	// goesDown reports whether it takes the host down.
	goesDown bool

	asked int
	err   error
	then  func()
}

func (l *logind) Refuses(context.Context) (string, error) { return l.refuses, nil }

func (l *logind) Logins(context.Context) ([]host.Login, error) { return nil, nil }

func (l *logind) GoingDown(context.Context) (bool, error) { return l.goesDown, nil }

func (l *logind) BlockInhibitors(context.Context) ([]host.Inhibitor, error) { return l.inhibitors, nil }

func (l *logind) Reboot(context.Context, v1alpha1.Obstacle) error {
	l.asked++
	if l.then != nil {
		l.then()
	}
	return l.err
}

// makeReconciler returns a Reconciler for a Node with a record whose engine has nothing new to
// report. If the record has only a grant, the engine requires a reboot.
func makeReconciler(t *testing.T, record protocol.Record) (*Reconciler, *apiServer, *logind) {
	t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "10", Annotations: map[string]string{
			v1alpha1.AnnotationEngines: `{"bootID":"boot-2","reported":[{"name":"e"}]}`,
		}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: v1alpha1.NodeRebootRequired, Status: corev1.ConditionFalse, Reason: "UpToDate", Message: "Nothing. Reported by e.",
		}}},
	}
	if record.Grant != nil {
		node.Annotations[v1alpha1.AnnotationGrant] = record.Grant.String()
	}
	if record.Progress != nil {
		node.Annotations[v1alpha1.AnnotationProgress] = record.Progress.String()
		node.Spec.Unschedulable = true
	}
	api := &apiServer{node: node, policy: &v1alpha1.RebootPolicy{}}
	if record.Grant != nil {
		api.policy.Status.Grants = []v1alpha1.LedgerEntry{{Node: "n1", Seq: record.Grant.Seq}}
	}
	root := t.TempDir()
	bootIDFile := filepath.Join(root, "boot_id")
	if err := os.WriteFile(bootIDFile, []byte(boot), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := &logind{}
	r := New(Config{
		Node: "n1", Client: api, Live: api, Policies: api,
		Host:   Host{BootIDFile: bootIDFile, Root: root, Logind: asked, Coordinators: &coordinators{}},
		Looker: &looker{}, Engines: []string{"e"}, Recorder: events.NewFakeRecorder(100), Clock: testclock.NewFakeClock(now),
	})
	report := engine.Report{Engine: "e", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: "Nothing."}
	if record.Grant != nil && record.Progress == nil {
		report = engine.Report{Engine: "e", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Message: "Staged."}
		c := &node.Status.Conditions[0]
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, "UpdateStaged", "Staged. Reported by e (asks)."
		node.Labels = map[string]string{v1alpha1.LabelRebootRequired: "true"}
		node.Annotations[v1alpha1.AnnotationEngines] = `{"bootID":"boot-2","reported":[{"name":"e","asks":true}]}`
	}
	r.Reports.Put(report)
	return r, api, asked
}

// change rebuilds the Reconciler with a changed configuration. Only the reports of the engines are
// kept.
func (r *Reconciler) change(change func(*Config)) {
	reported := r.Reports.all()
	change(&r.Config)
	*r = *New(r.Config)
	for _, report := range reported {
		r.Reports.Put(report)
	}
}

// drainBy replaces the drains of the Reconciler.
func (r *Reconciler) drainBy(d *drains) { r.drains, r.observer.drains = d, d }

// observed returns everything that the Reconciler observes for a decision.
func (r *Reconciler) observed(t *testing.T, node *corev1.Node) step.Observation {
	t.Helper()
	o, err := r.observer.observe(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	for d := step.Decide(o); d.Missing != step.FactNone; d = step.Decide(o) {
		r.observer.find(t.Context(), &o, d.Missing)
	}
	return o
}

var (
	errAPI   = errors.New("the API server is away")
	conflict = apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "n1", errors.New("changed"))
)

// inLedgerOf returns grant 1 of policy workers in another policy's ledger.
func inLedgerOf(ledger string) *protocol.Grant {
	g := makeGrant(1, active, boot)
	g.Ledger = ledger
	return g
}

// isMine marks the progress of the Node as written by this process.
func isMine(r *Reconciler, api *apiServer) {
	r.observer.sighting = sighting{api.node.Annotations[v1alpha1.AnnotationProgress], now, true}
}

func TestReconcile(t *testing.T) {
	maintained := func(r *Reconciler, api *apiServer) {
		isMine(r, api)
		api.node.Status.Conditions = append(api.node.Status.Conditions, step.NodeStatusOf(step.Observation{BootID: boot, Record: inPhase(rebootingPhase)}).Conditions...)
	}
	cases := map[string]struct {
		record  protocol.Record
		change  func(*Reconciler, *apiServer)
		want    ctrl.Result
		wantErr string
		patches int
		asked   int
	}{
		"at rest: nothing": {},
		"the Node is gone: nothing": {
			change: func(_ *Reconciler, api *apiServer) { api.getErr = apierrors.NewNotFound(schema.GroupResource{}, "n1") },
		},
		"the Node cannot be read": {
			change: func(_ *Reconciler, api *apiServer) { api.getErr = errAPI }, wantErr: "reading the Node: the API server is away",
		},
		"without a boot ID nothing is decided": {
			record: granted(),
			change: func(r *Reconciler, _ *apiServer) { r.change(func(c *Config) { c.Host.BootIDFile += ".gone" }) }, wantErr: "reading the boot ID",
		},
		"a grant begins the drain": {record: granted(), want: ctrl.Result{RequeueAfter: time.Minute}, patches: 1},
		"a policy that cannot be read is asked for again": {
			record: granted(),
			change: func(_ *Reconciler, api *apiServer) { api.policyErr = errAPI },
			want:   ctrl.Result{RequeueAfter: 30 * time.Second},
		},
		"a grant that the ledger has withdrawn begins nothing, and that is reported": {
			record: granted(),
			change: func(_ *Reconciler, api *apiServer) { api.policy.Status.Grants[0].WithdrawnAt = &metav1.Time{Time: now} },
			want:   ctrl.Result{RequeueAfter: 30 * time.Second}, patches: 1,
		},
		"a grant that the ledger holds for another node begins nothing": {
			record: granted(),
			change: func(_ *Reconciler, api *apiServer) { api.policy.Status.Grants[0].Node = "n2" },
			want:   ctrl.Result{RequeueAfter: 30 * time.Second}, patches: 1,
		},
		"a grant begins if the ledger that it names has it": {
			record: protocol.Record{Grant: inLedgerOf("limiting")},
			change: func(_ *Reconciler, api *apiServer) {
				api.limiting, api.policy = api.policy, &v1alpha1.RebootPolicy{}
			},
			want: ctrl.Result{RequeueAfter: time.Minute}, patches: 1,
		},
		"a grant begins nothing if only its policy's own ledger has it": {
			record: protocol.Record{Grant: inLedgerOf("limiting")},
			change: func(_ *Reconciler, api *apiServer) { api.limiting = &v1alpha1.RebootPolicy{} },
			want:   ctrl.Result{RequeueAfter: 30 * time.Second}, patches: 1,
		},
		"a grant begins nothing if the ledger cannot be read, and the read is tried again": {
			record: protocol.Record{Grant: inLedgerOf("limiting")}, want: ctrl.Result{RequeueAfter: 30 * time.Second},
		},
		"the settings read in this attempt still count": {
			record: inPhase(drainingPhase),
			change: func(r *Reconciler, api *apiServer) {
				api.policyErr = errAPI
				r.drains.last = attempt{seq: 1, Drain: step.Drain{State: step.DrainFailed, Failures: 1, FailedAt: now}}
				r.observer.policy = lastSettings{grantID{"workers", 1}, now, step.Settings{Drain: v1alpha1.Drain{Timeout: &v1alpha1.Duration{Duration: 5*time.Minute + time.Second}}}}
			},
			want: ctrl.Result{RequeueAfter: time.Second}, patches: 1,
		},
		"settings read for an earlier grant of the same number begin nothing": {
			record: granted(),
			change: func(r *Reconciler, api *apiServer) {
				api.policyErr = errAPI
				r.observer.policy = lastSettings{grantID{"workers", 1}, now, step.Settings{}}
			},
			want: ctrl.Result{RequeueAfter: 30 * time.Second},
		},
		"an obstacle to another policy's grant of the same number does not count": {
			record: granted(),
			change: func(r *Reconciler, _ *apiServer) {
				r.observer.startLook = startLook{grantID{"others", 1}, step.Look{At: now, Problem: "unknown"}}
			},
			want: ctrl.Result{RequeueAfter: time.Minute}, patches: 1,
		},
		"a conflict is decided again": {
			record:  granted(),
			change:  func(_ *Reconciler, api *apiServer) { api.patchErr = conflict },
			want:    ctrl.Result{RequeueAfter: conflictRetry},
			patches: 1,
		},
		"a write that fails is an error": {
			record:  granted(),
			change:  func(_ *Reconciler, api *apiServer) { api.patchErr = errAPI },
			wantErr: "patching the Node: the API server is away", patches: 1,
		},
		"a report that fails is an error": {
			change:  func(_ *Reconciler, api *apiServer) { api.node.Status.Conditions, api.patchErr = nil, errAPI },
			wantErr: "patching the status of the Node: the API server is away", patches: 1,
		},
		"a committed node goes down": {record: inPhase(rebootingPhase), change: maintained, asked: 1},
		"a committed node goes down, even if a later release committed it": {
			record: inPhase(rebootingPhase), change: func(r *Reconciler, api *apiServer) {
				maintained(r, api)
				progress := api.node.Annotations[v1alpha1.AnnotationProgress]
				api.node.Annotations[v1alpha1.AnnotationProgress] = strings.Replace(progress, "{", `{"later":1,`, 1)
				isMine(r, api)
			}, asked: 1,
		},
		"another process records that it calls again": {record: inPhase(rebootingPhase), patches: 1},
		"a host whose logind always refuses is given up": {
			record: inPhase(rebootingPhase),
			change: func(r *Reconciler, _ *apiServer) {
				r.observer.call = call{seq: 1, Call: step.Call{Refusals: 8, RefusedAt: now.Add(-time.Hour)}}
			},
			patches: 1,
		},
		"a host that goes down after all is not given up": {
			record: inPhase(rebootingPhase),
			change: func(r *Reconciler, api *apiServer) {
				maintained(r, api)
				r.observer.call = call{seq: 1, Call: step.Call{Refusals: 8, RefusedAt: now.Add(-time.Hour)}}
				r.Host.Logind.(*logind).goesDown = true
			},
			want: ctrl.Result{RequeueAfter: 15 * time.Second}, patches: 1, // for the report of logind's refusal
		},
		"the cache is confirmed by a live read first": {
			record: inPhase(rebootingPhase),
			change: func(r *Reconciler, api *apiServer) {
				live := *api
				live.node = api.node.DeepCopy()
				live.node.Annotations[v1alpha1.AnnotationProgress] = makeProgress(2, drainingPhase, boot).String()
				r.change(func(c *Config) { c.Live = &live })
				isMine(r, api)
			},
			wantErr: "confirming the reboot: the cache shows progress",
		},
		"without a live read nothing goes down": {
			record: inPhase(rebootingPhase),
			change: func(r *Reconciler, api *apiServer) {
				r.change(func(c *Config) { c.Live = &apiServer{getErr: errAPI} })
				isMine(r, api)
			},
			wantErr: "confirming the reboot: the API server is away",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, api, logind := makeReconciler(t, tc.record)
			if tc.change != nil {
				tc.change(r, api)
			}
			got, err := r.Reconcile(t.Context(), ctrl.Request{})
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if len(api.patches) != tc.patches || logind.asked != tc.asked {
				t.Errorf("%d calls of logind, patches %q", logind.asked, api.patches)
			}
		})
	}
}

func TestReconcile_CommitsWithItsConditionsInOneWrite(t *testing.T) {
	r, api, _ := makeReconciler(t, inPhase(drainingPhase))
	r.drains.last = attempt{seq: 1, Drain: step.Drain{State: step.DrainDone, DoneAt: now}}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || len(api.patches) != 1 {
		t.Fatalf("error %v, patches %q", err, api.patches)
	}
	for _, part := range []string{
		`status {`, `"resourceVersion":"10"`, `\"phase\":\"Rebooting\"`, `"type":"DrainInProgress","status":"False"`,
		`"type":"Drained","status":"True"`, `"type":"MaintenanceInProgress","status":"True"`,
	} {
		if !strings.Contains(api.patches[0], part) {
			t.Errorf("no %s in %s", part, api.patches[0])
		}
	}
}

func TestReconcile_ReadsThePolicyIfItMatters(t *testing.T) {
	r, api, _ := makeReconciler(t, inPhase(drainingPhase))
	hour := step.Settings{Drain: v1alpha1.Drain{Timeout: &v1alpha1.Duration{Duration: time.Hour}}}
	r.drains.last = attempt{seq: 1, settings: hour, Drain: step.Drain{State: step.DrainRunning}}
	got, err := r.Reconcile(t.Context(), ctrl.Request{})
	if want := (ctrl.Result{RequeueAfter: 55 * time.Minute}); err != nil || got != want || api.policyReads != 0 {
		t.Errorf("a drain runs: %v, %v, the policy was read %d times", got, err, api.policyReads)
	}
	r.drains.last.Drain = step.Drain{State: step.DrainFailed, Failures: 1, FailedAt: now}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || api.policyReads != 1 {
		t.Errorf("a drain is to be run: %v, the policy was read %d times", err, api.policyReads)
	}
}

// TestReconcile_StopsTheDrainFirst shows that nothing is evicted after an attempt has ended, for
// any reason.
func TestReconcile_StopsTheDrainFirst(t *testing.T) {
	cases := map[string]func(*apiServer){
		"cancelled": func(api *apiServer) {
			api.node.Annotations[v1alpha1.AnnotationGrant] = makeGrant(1, cancelled, boot).String()
		},
		"unreadable":       func(api *apiServer) { api.node.Annotations[v1alpha1.AnnotationProgress] = "nonsense" },
		"removed":          func(api *apiServer) { delete(api.node.Annotations, v1alpha1.AnnotationProgress) },
		"the Node is gone": func(api *apiServer) { api.getErr = apierrors.NewNotFound(schema.GroupResource{}, "n1") },
	}
	for name, end := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, d *drains, _ *fakeDrainer) {
				t.Helper()
				r, api, _ := makeReconciler(t, inPhase(drainingPhase))
				r.drainBy(d)
				d.mustRun(t, 1)
				end(api)
				if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || d.running() {
					t.Errorf("error %v, drain %+v", err, d.of(1).Drain)
				}
			})
		})
	}
}

// TestReconcile_WaitsForTheEndOfItsAttempt covers a repeated drain and a repeated call of logind.
// They start without a write that would wake the agent, which still has to notice that they take
// too long.
func TestReconcile_WaitsForTheEndOfItsAttempt(t *testing.T) {
	cases := map[string]struct {
		phase protocol.Phase
		last  step.Drain
		until time.Duration
	}{
		"a drain after one that failed":     {drainingPhase, step.Drain{State: step.DrainFailed, Failures: 1, FailedAt: now.Add(-time.Hour)}, 15 * time.Minute},
		"a drain of an earlier process":     {drainingPhase, step.Drain{}, 15 * time.Minute},
		"a reboot that logind has accepted": {rebootingPhase, step.Drain{}, 5 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, d *drains, _ *fakeDrainer) {
				t.Helper()
				r, api, _ := makeReconciler(t, inPhase(tc.phase))
				r.drainBy(d)
				d.last = attempt{seq: 1, Drain: tc.last}
				if tc.phase == rebootingPhase {
					isMine(r, api)
					api.node.Status.Conditions = append(api.node.Status.Conditions, step.NodeStatusOf(step.Observation{BootID: boot, Record: inPhase(rebootingPhase)}).Conditions...)
				}
				<-r.Wake.triggers // of the engine's report
				if got, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || got != (ctrl.Result{}) || len(api.patches) > 0 {
					t.Fatalf("%v, %v, patches %q", got, err, api.patches)
				}
				if len(r.Wake.triggers) != 1 {
					t.Error("nobody wakes the agent")
				}
				if got, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || got.RequeueAfter != tc.until {
					t.Errorf("then it waits for %v, want %v: %v", got.RequeueAfter, tc.until, err)
				}
			})
		})
	}
}

func TestCallReboot_WhileTheAgentIsStopped(t *testing.T) {
	cases := map[string]struct {
		err      error
		refusals int
		wantErr  bool
	}{
		"accepted is accepted":                {nil, 0, false},
		"a missing response is not a refusal": {context.Canceled, 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, api, logind := makeReconciler(t, inPhase(rebootingPhase))
			ctx, cancel := context.WithCancel(t.Context())
			logind.err, logind.then = tc.err, cancel
			err := r.callReboot(ctx, api.node, r.observed(t, api.node), step.CallReboot{})
			if (err != nil) != tc.wantErr || r.observer.call.Refusals != tc.refusals || r.observer.call.AcceptedAt.IsZero() != tc.wantErr {
				t.Errorf("error %v, call %+v", err, r.observer.call)
			}
		})
	}
}

// An update that a FleetLock client has not finalized in time is finalized first, unless the host
// is held up. rpm-ostree reboots the host after that and ignores inhibitors.
func TestCallReboot_FinalizesAnUpdateIfTheClientHasNot(t *testing.T) {
	cases := map[string]struct {
		next       step.CallReboot
		inhibitors []host.Inhibitor
		err        error
		finalized  int
		refusal    string
	}{
		"finalized, then rebooted":                         {next: step.CallReboot{Finalize: true}, finalized: 1},
		"nothing to finalize":                              {next: step.CallReboot{}},
		"a shutdown is blocked":                            {next: step.CallReboot{Finalize: true}, inhibitors: []host.Inhibitor{{Who: "backup", Why: "runs"}}, refusal: "backup (runs)"},
		"a shutdown is blocked, and the policy ignores it": {next: step.CallReboot{Finalize: true, Inhibitors: v1alpha1.ObstacleIgnore}, inhibitors: []host.Inhibitor{{Who: "backup"}}, finalized: 1},
		"rpm-ostree refuses":                               {next: step.CallReboot{Finalize: true}, err: errors.New("no"), finalized: 1, refusal: "finalizing the update: no"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, api, logind := makeReconciler(t, inPhase(rebootingPhase))
			finalized := 0
			r.Host.Finalize = func(context.Context) error {
				finalized++
				return tc.err
			}
			logind.inhibitors = tc.inhibitors
			if err := r.callReboot(t.Context(), api.node, r.observed(t, api.node), tc.next); err != nil {
				t.Fatal(err)
			}
			call := r.observer.call
			if finalized != tc.finalized || (logind.asked == 1) != (tc.refusal == "") || !strings.Contains(call.Message, tc.refusal) || (call.Refusals == 1) != (tc.refusal != "") {
				t.Errorf("finalized %d times, logind asked %d times, call %+v", finalized, logind.asked, call)
			}
		})
	}
}

// TestEvent_IsCutToFit shows that notes are shortened, because the API server refuses longer ones.
func TestEvent_IsCutToFit(t *testing.T) {
	r, api, _ := makeReconciler(t, protocol.Record{})
	r.announcer.event(api.node, "A", "Do", "%s", strings.Repeat("x", 2000))
	r.announcer.warn(api.node, "A", "Do", "%s", strings.Repeat("x", 2000))
	for _, event := range r.announcer.emitted() {
		if got := len(event) - len("Warning A "); got > 1024 {
			t.Errorf("a note of %d bytes", got)
		}
	}
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	registry.MustRegister(lifecycle.BuildInfo("v1"))
	m.EngineUp("update-engine")(true)
	m.EngineUp("rpm-ostree")(false)
	m.Malformed("update-engine")()
	m.evicted("workers")("evicted")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			parts := []string{family.GetName()}
			for _, label := range metric.Label {
				if label.GetName() != "goversion" {
					parts = append(parts, label.GetName()+"="+label.GetValue())
				}
			}
			got[strings.Join(parts, " ")] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	want := map[string]float64{
		"reboot_operator_agent_engine_up engine=update-engine":              1,
		"reboot_operator_agent_engine_up engine=rpm-ostree":                 0,
		"reboot_operator_agent_engine_malformed_total engine=update-engine": 1,
		"reboot_operator_evictions_total policy=workers result=evicted":     1,
		"reboot_operator_build_info version=v1":                             1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func TestSettings_AreReadForAWriteAndKeptForTheNextStep(t *testing.T) {
	earlier := step.Settings{Drain: v1alpha1.Drain{Timeout: &v1alpha1.Duration{Duration: time.Hour}}}
	cases := map[string]struct {
		phase protocol.Phase
		drain step.DrainState
		call  step.Call
		age   time.Duration
		grant grantID
		reads int
	}{
		"a drain that has begun":                                {phase: drainingPhase},
		"a drain that should have begun long ago":               {phase: drainingPhase, age: 5 * time.Second, reads: 1},
		"a drain that is done: no return":                       {phase: drainingPhase, drain: step.DrainDone, reads: 1},
		"a drain that failed":                                   {phase: drainingPhase, drain: step.DrainFailed, reads: 1},
		"logind is to be called":                                {phase: rebootingPhase, reads: 1},
		"logind is to be called again":                          {phase: rebootingPhase, call: step.Call{Refusals: 1, RefusedAt: now.Add(-time.Hour)}, reads: 1},
		"the settings for another grant":                        {phase: drainingPhase, grant: grantID{"workers", 7}, reads: 1},
		"another policy's settings":                             {phase: drainingPhase, grant: grantID{"others", 1}, reads: 1},
		"another policy's settings, and logind is to be called": {phase: rebootingPhase, grant: grantID{"others", 1}, reads: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, api, _ := makeReconciler(t, inPhase(tc.phase))
			r.observer.policy = lastSettings{stdcmp.Or(tc.grant, grantID{"workers", 1}), now.Add(-tc.age), earlier}
			r.drains.last = attempt{seq: 1, Drain: step.Drain{State: tc.drain, FailedAt: now}}
			r.observer.call = call{seq: 1, Call: tc.call}
			o := r.observed(t, api.node)
			if api.policyReads != tc.reads {
				t.Fatalf("the policy was read %d times", api.policyReads)
			}
			if reused := o.Settings().Drain.Timeout != nil; reused != (tc.reads == 0) {
				t.Errorf("goes by %+v", o.Settings().Drain)
			}
		})
	}
}

// TestReconcile_GoesByThePolicyAtThePointOfNoReturn shows that the policy at the start of the drain
// does not count any more.
func TestReconcile_GoesByThePolicyAtThePointOfNoReturn(t *testing.T) {
	r, api, _ := makeReconciler(t, inPhase(drainingPhase))
	r.observer.policy = lastSettings{grantID{"workers", 1}, now, step.Settings{Reboot: v1alpha1.Reboot{Coordinators: v1alpha1.ObstacleIgnore}}}
	r.drains.last = attempt{seq: 1, Drain: step.Drain{State: step.DrainDone, DoneAt: now}}
	r.observer.host.Coordinators = &coordinators{other: &host.Coordinator{Name: "locksmithd"}}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || strings.Contains(strings.Join(api.patches, ""), "Rebooting") {
		t.Errorf("error %v, patches %q", err, api.patches)
	}
}

// TestConfirm shows that the Node is read live right before logind is called, even by the process
// that passed the point of no return. That process may have been restored with its machine.
func TestConfirm(t *testing.T) {
	cases := map[string]struct {
		live func(*corev1.Node)
		want string
	}{
		"still past the point of no return":     {live: func(*corev1.Node) {}},
		"by a kubelet that has reported it":     {live: func(node *corev1.Node) { node.Status.NodeInfo.BootID = boot }},
		"by a kubelet that reports another one": {live: func(node *corev1.Node) { node.Status.NodeInfo.BootID = otherBoot }, want: "its kubelet reports"},
		"with other progress": {
			live: func(node *corev1.Node) {
				node.Annotations[v1alpha1.AnnotationProgress] = makeProgress(7, rebootingPhase, boot).String()
			},
			want: "the cache shows progress",
		},
		"under a grant that is over": {
			live: func(node *corev1.Node) {
				node.Annotations[v1alpha1.AnnotationGrant] = makeGrant(1, protocol.GrantFinished, boot).String()
			},
			want: "the API server shows grant",
		},
		"as another Node": {live: func(node *corev1.Node) { node.UID = "another" }, want: "the API server shows grant"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, api, _ := makeReconciler(t, inPhase(rebootingPhase))
			o := r.observed(t, api.node)
			live := api.node.DeepCopy()
			tc.live(live)
			r.writer.live = &apiServer{node: live}
			err := r.writer.confirm(t.Context(), api.node, o)
			if got := fmt.Sprint(err); (err != nil) != (tc.want != "") || !strings.Contains(got, tc.want) && err != nil {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			r.writer.live = &apiServer{getErr: errAPI}
			if err := r.writer.confirm(t.Context(), api.node, o); !errors.Is(err, errAPI) {
				t.Errorf("got %v while the API server is down", err)
			}
		})
	}
}

// An administrator may take over the cordon during the drain, by uncordoning the node and cordoning
// it again before the cache shows it.
func TestReconcile_AbortLeavesAnAdministratorsCordon(t *testing.T) {
	cordonOf := func(manager string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: manager, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)}}
	}
	cases := map[string]struct {
		cordon     []metav1.ManagedFieldsEntry
		uncordoned bool
		uncordons  bool
		event      string
	}{
		"the agent's own":                   {cordonOf(v1alpha1.FieldOwnerAgent), false, true, "Cancelled, uncordoned (number 1)"},
		"an administrator's":                {cordonOf("kubectl"), false, false, "Cancelled, still cordoned, because somebody else cordoned it (number 1)"},
		"an API server that does not track": {nil, false, true, "Cancelled, uncordoned (number 1)"},
		"no cordon any more":                {nil, true, false, "Cancelled, already uncordoned (number 1)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, api, _ := makeReconciler(t, protocol.Record{Grant: makeGrant(1, cancelled, boot), Progress: makeProgress(1, drainingPhase, boot)})
			api.node.ManagedFields, api.node.Spec.Unschedulable = tc.cordon, !tc.uncordoned
			if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(api.patches[0], "unschedulable"); got != tc.uncordons || !strings.Contains(api.patches[0], "Aborted") {
				t.Errorf("wrote %s", api.patches[0])
			}
			if got := r.announcer.emitted(); len(got) != 1 || !strings.Contains(got[0], tc.event) {
				t.Errorf("reported %q, want %q", got, tc.event)
			}
		})
	}
}
