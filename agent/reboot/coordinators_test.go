package reboot

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// coordinators is a host on which another program may or may not reboot the host.
type coordinators struct {
	other *host.Coordinator
	err   error
	asked int
}

func (c *coordinators) Other(context.Context) (*host.Coordinator, error) {
	c.asked++
	return c.other, c.err
}

var locksmithd = &host.Coordinator{Name: "locksmithd", Unit: "locksmithd.service"}

const locksmithdIsActive = "locksmithd is active on this host and may reboot it at any time: " +
	"systemctl mask --now locksmithd.service on the host, or set spec.reboot.coordinators: Ignore."

func TestRival(t *testing.T) {
	errDenied := errors.New("asking systemd: denied")
	cases := map[string]struct {
		other *host.Coordinator
		err   error
		want  string
	}{
		"nobody":     {nil, nil, ""},
		"locksmithd": {locksmithd, nil, locksmithdIsActive},
		"a program that its own command turns off": {
			&host.Coordinator{Name: "dnf-automatic", Unit: "dnf-automatic.timer", Off: "sed -i /reboot/d /etc/dnf/automatic.conf"}, nil,
			"dnf-automatic is active on this host and may reboot it at any time: sed -i /reboot/d /etc/dnf/automatic.conf on the host, " +
				"or set spec.reboot.coordinators: Ignore.",
		},
		"a shutdown that somebody has scheduled": {
			&host.Coordinator{Name: "reboot", At: now, By: `uid 0 "Upgraded"`}, nil,
			`A shutdown of this host (reboot) is scheduled for Sat 2026-11-21 22:00:00 UTC by uid 0 "Upgraded": shutdown -c on the host, ` +
				"or set spec.reboot.coordinators: Ignore.",
		},
		"a scheduled shutdown of an unknown program": {
			&host.Coordinator{Name: "poweroff", At: now}, nil,
			"A shutdown of this host (poweroff) is scheduled for Sat 2026-11-21 22:00:00 UTC: shutdown -c on the host, " +
				"or set spec.reboot.coordinators: Ignore.",
		},
		"another coordinator": {
			&host.Coordinator{Name: "fluo"}, nil,
			"fluo holds /run/update-engine/coordinator.conf on this host and may reboot it at any time: stop that, or set spec.reboot.coordinators: Ignore.",
		},
		"a program without a name": {
			&host.Coordinator{}, nil,
			"A program without a readable NAME holds /run/update-engine/coordinator.conf on this host and may reboot it at any time: " +
				"stop that, or set spec.reboot.coordinators: Ignore.",
		},
		"it is unknown whether another program may reboot the host": {
			nil, errDenied,
			"It is unknown whether another program may reboot this host. Fix the cause, or set spec.reboot.coordinators: Ignore. The cause: asking systemd: denied.",
		},
		"one program is found, and others are unknown": {locksmithd, errDenied, locksmithdIsActive},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rival(tc.other, tc.err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := rival(nil, errors.New(strings.Repeat("x", 1000))); len(got) != engine.MaxMessageBytes {
		t.Errorf("%d bytes of a long error", len(got))
	}
}

// TestReconcile_ReportsAConflict shows that each change in the report of the Node emits a warning,
// and never before it is written (behaviour 57).
func TestReconcile_ReportsAConflict(t *testing.T) {
	r, api, _ := makeReconciler(t, protocol.Record{})
	found := &coordinators{}
	api.keeps = true
	r.change(func(c *Config) { c.Host.Coordinators = found })
	r.Reports.Put(engine.Report{Engine: "e", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Message: "Staged."})
	reconcile := func() []string {
		result, err := r.Reconcile(t.Context(), ctrl.Request{})
		if !errors.Is(err, api.patchErr) {
			t.Fatal(err)
		}
		if err == nil && result.RequeueAfter != time.Minute {
			t.Errorf("looks again in %s, want a minute", result.RequeueAfter)
		}
		return r.announcer.warnings()
	}
	steps := []struct {
		what  string
		other *host.Coordinator
		err   error
		want  []string
	}{
		{"nobody", nil, nil, nil},
		{"somebody, and the Node cannot be written", locksmithd, errAPI, nil},
		{"somebody", locksmithd, nil, []string{"Warning CoordinatorConflict " + locksmithdIsActive}},
		{"somebody still", locksmithd, nil, nil},
		{"somebody still, and something else is new", locksmithd, nil, nil},
		{"nobody any more", nil, nil, nil},
		{"somebody again", locksmithd, nil, []string{"Warning CoordinatorConflict " + locksmithdIsActive}},
	}
	for _, next := range steps {
		found.other, api.patchErr = next.other, next.err
		if strings.HasSuffix(next.what, "something else is new") {
			r.Reports.Put(engine.Report{Engine: "e", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Message: "Staged again."})
		}
		if diff := cmp.Diff(next.want, reconcile()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", next.what, diff)
		}
		if shown := conflictOn(t, api.node) != ""; next.err == nil && shown != (next.other != nil) {
			t.Errorf("%s: the Node shows so: %t", next.what, shown)
		}
	}
}

// conflictOn returns the conflict that the Node reports.
func conflictOn(t *testing.T, node *corev1.Node) string {
	t.Helper()
	report, err := protocol.ParseAgentReport(node.Annotations)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range report.BlockedBy {
		if o.Reason == v1alpha1.ReasonCoordinatorConflict {
			return o.Message
		}
	}
	return ""
}

// silentHost is a host whose services accept every call but never reply.
type silentHost struct{}

func (silentHost) BlockInhibitors(ctx context.Context) ([]host.Inhibitor, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silentHost) Refuses(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func (silentHost) Logins(ctx context.Context) ([]host.Login, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silentHost) GoingDown(ctx context.Context) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

func (silentHost) Reboot(ctx context.Context, _ v1alpha1.Obstacle) error {
	<-ctx.Done()
	return ctx.Err()
}

func (silentHost) Other(ctx context.Context) (*host.Coordinator, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestReconcile_AHostThatDoesNotAnswerLeavesTimeToWrite shows that unknown inhibitors and
// coordinators are reported, and end a drain that has timed out.
func TestReconcile_AHostThatDoesNotAnswerLeavesTimeToWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		record protocol.Record
		change func(*Reconciler)
		want   string
	}{
		"a need": {protocol.Record{}, func(r *Reconciler) {
			r.Reports.Put(engine.Report{Engine: "e", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Message: "Staged."})
		}, string(v1alpha1.ReasonCoordinatorConflict)},
		"a drained node, after its deadline": {inPhase(drainingPhase), func(r *Reconciler) {
			r.drains.last.seq, r.drains.last.State = 1, step.DrainDone
			r.Clock.(*testclock.FakeClock).SetTime(now.Add(time.Hour))
		}, string(abortedPhase)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, api, _ := makeReconciler(t, tc.record)
				r.change(func(c *Config) { c.Host.Logind, c.Host.Coordinators = silentHost{}, silentHost{} })
				tc.change(r)
				ctx, cancel := context.WithTimeout(t.Context(), reconcileLimit)
				defer cancel()
				if _, err := r.Reconcile(ctx, ctrl.Request{}); err != nil || ctx.Err() != nil {
					t.Errorf("ended with %v, after all of its time: %v", err, ctx.Err())
				}
				if len(api.patches) != 1 || !strings.Contains(api.patches[0], tc.want) {
					t.Errorf("wrote %v, want %s", api.patches, tc.want)
				}
			})
		})
	}
}
