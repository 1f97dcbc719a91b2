package reboot

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// guarded is a logind behind a bus that rejects all calls. The text of its errors names the
// connection, which is a new one for each call.
type guarded struct{ calls int }

func (g *guarded) refuse() error {
	g.calls++
	return fmt.Errorf("calling: %w", &host.RefusedError{
		Name:    "org.freedesktop.DBus.Error.AccessDenied",
		Message: fmt.Sprintf(`Rejected send message; sender=":1.%d" (uid=0 pid=12)`, g.calls),
	})
}

func (g *guarded) BlockInhibitors(context.Context) ([]host.Inhibitor, error) { return nil, g.refuse() }

func (g *guarded) Refuses(context.Context) (string, error) { return "", nil }

func (g *guarded) Logins(context.Context) ([]host.Login, error) { return nil, g.refuse() }

func (g *guarded) GoingDown(context.Context) (bool, error) { return false, g.refuse() }

func (g *guarded) Reboot(context.Context, v1alpha1.Obstacle) error { return g.refuse() }

// makeGuarded returns the reconciler of such a host whose engine requires a reboot. The API server
// keeps what is written.
func makeGuarded(t *testing.T, record protocol.Record) (*Reconciler, *apiServer, *guarded) {
	t.Helper()
	r, api, _ := makeReconciler(t, record)
	logind := &guarded{}
	api.keeps = true
	r.change(func(c *Config) { c.Host.Logind = logind })
	r.Reports.Put(engine.Report{Engine: "e", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Message: "Staged."})
	return r, api, logind
}

// Each write triggers a reconcile, so a message that differed each time would be written without
// end.
func TestReconcile_WritesOnceThatLogindDoesNotNameWhoBlocks(t *testing.T) {
	r, api, logind := makeGuarded(t, protocol.Record{})
	for range 5 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	if logind.calls != 5 || len(api.patches) != 1 {
		t.Errorf("%d looks, patches %q", logind.calls, api.patches)
	}
	const want = "logind cannot be asked who blocks a shutdown: logind answers org.freedesktop.DBus.Error.AccessDenied."
	if !strings.Contains(api.node.Annotations[v1alpha1.AnnotationReport], want) {
		t.Errorf("the Node shows %q", api.node.Annotations[v1alpha1.AnnotationReport])
	}
}

// Here logind's own message is reported, and it changes with each connection. So each call costs
// one write, which is one in five minutes in the end. The checks in between do not cost any.
func TestReconcile_WritesEachRefusalOnce(t *testing.T) {
	r, api, logind := makeGuarded(t, inPhase(rebootingPhase))
	clock := testclock.NewFakeClock(now)
	r.change(func(c *Config) { c.Clock = clock })
	isMine(r, api)
	for asked := 1; asked <= 3; asked++ {
		for range 5 {
			if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		// The first write reports, before the first call, that the host is about to go down.
		if logind.calls != asked || len(api.patches) != asked+1 {
			t.Errorf("asked %d times, want %d; patches %q", logind.calls, asked, api.patches)
		}
		clock.SetTime(clock.Now().Add(5*time.Minute + time.Second))
	}
	if report := api.node.Annotations[v1alpha1.AnnotationReport]; !strings.Contains(report, "Rejected send message") {
		t.Errorf("the Node shows %q", report)
	}
}

// It is unknown whether logind obeys a call whose reply is lost. The report must not deny it.
func TestCallReboot_LosesTheAnswer(t *testing.T) {
	r, api, logind := makeReconciler(t, protocol.Record{Grant: makeGrant(1, active, boot), Progress: makeProgress(1, rebootingPhase, boot)})
	logind.err = context.DeadlineExceeded
	err := r.callReboot(t.Context(), api.node, r.observed(t, api.node), step.CallReboot{})
	if got, want := r.observer.call.Message, "Logind has not confirmed the reboot: context deadline exceeded."; got != want || err != nil {
		t.Errorf("%q, want %q: %v", got, want, err)
	}
}
