package rpmostree

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/source"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

// Finalizing unlocks the staged deployment, and then rpm-ostree reboots the host. A second call
// does nothing.
func TestFinalizer(t *testing.T) {
	locked := hosttest.Deployment{Version: "40.2", Staged: true, Locked: true}
	for name, tc := range map[string]struct {
		deployments []hosttest.Deployment
		breaks      func(*hosttest.RPMOSTree)
		want        string
		calls       []string
	}{
		"a locked deployment": {
			deployments: []hosttest.Deployment{locked, running},
			calls:       []string{"RegisterClient", "FinalizeDeployment", "Start"},
		},
		"a deployment that the client has finalized": {deployments: []hosttest.Deployment{{Version: "40.2", Staged: true}, running}},
		"nothing is staged":                          {deployments: []hosttest.Deployment{running}, want: errNothingStaged.Error()},
		"rpm-ostree answers with an error": {
			deployments: []hosttest.Deployment{locked, running}, want: "reading Sysroot of rpm-ostree",
			breaks: func(o *hosttest.RPMOSTree) { o.FailReads("org.freedesktop.DBus.Error.AccessDenied", "") },
		},
		"the transaction fails": {
			deployments: []hosttest.Deployment{locked, running}, want: "No pending staged deployment found",
			breaks: func(o *hosttest.RPMOSTree) {
				o.BeforeFinalize(func() { _ = o.SetDeployments(running) })
			},
			calls: []string{"RegisterClient", "FinalizeDeployment", "Start"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t, tc.deployments...)
			rebooted := make(chan struct{}, 1)
			d.ostree.OnFinalize(func() { rebooted <- struct{}{} })
			if tc.breaks != nil {
				tc.breaks(d.ostree)
			}
			err := Finalizer{Connect: host.SystemBus(d.bus.Address()), Clock: d.Clock}.Finalize(t.Context())
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
			if diff := cmp.Diff(tc.calls, d.ostree.Calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			unlocked := !slices.ContainsFunc(d.ostree.Deployments(), func(d hosttest.Deployment) bool { return d.Locked })
			if err == nil && !unlocked {
				t.Error("it is still locked")
			}
			if wants := err == nil && tc.calls != nil; wants != (len(rebooted) == 1) {
				t.Errorf("rebooted %d times", len(rebooted))
			}
		})
	}
}

// A locked deployment is a need while a FleetLock client finalizes it, even if the client's
// configuration changes.
func TestEngine_LockedDeploymentIsANeedWhileAClientFinalizesIt(t *testing.T) {
	h := newHarness(t)
	client := ""
	h.engine.Again = make(source.Again)
	h.engine.Client = func(context.Context) (string, error) { return client, nil }
	ostree := h.install(hosttest.Deployment{Version: "40.2", Staged: true, Locked: true}, running)
	h.start()
	next := func(description string, matches func(engine.Report) bool) {
		t.Helper()
		h.Until("a report", func() bool { return len(h.Reports) > 0 }, 0)
		if got := <-h.Reports; !matches(got) {
			t.Errorf("%+v is not %s", got, description)
		}
	}
	locked := func(r engine.Report) bool {
		return r.State == engine.NotNeeded && strings.Contains(r.Message, "is locked")
	}
	next("a locked deployment", locked)
	client = "Zincati"
	h.Must(h.engine.Again.Look(t.Context()))
	next("a need", func(r engine.Report) bool {
		return r.State == engine.Needed && r.Client == "Zincati" && r.Version == "40.2"
	})
	client = ""
	h.Must(h.engine.Again.Look(t.Context()))
	next("a locked deployment", locked)
	h.expectNothing(ostree)
}
