package reboot

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestReports_WaitForEachEngine(t *testing.T) {
	wake := newWake("n1")
	r := newReports(wake, "a", "b")
	a, b := engine.Report{Engine: "a", State: engine.NotNeeded}, engine.Report{Engine: "b", State: engine.Needed, Message: "B."}
	for _, report := range []engine.Report{b, a} {
		if got := r.all(); got != nil {
			t.Errorf("before %s: %v", report.Engine, got)
		}
		r.Put(report)
	}
	if diff := cmp.Diff([]engine.Report{a, b}, r.all()); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	if len(wake.triggers) != 1 {
		t.Error("nobody was woken")
	}
}

func TestReconciler_Before(t *testing.T) {
	r, api, _ := makeReconciler(t, protocol.Record{})
	api.node.Annotations = map[string]string{v1alpha1.AnnotationEngines: `{"bootID":"boot-2","reported":[{"name":"update-engine","asks":true,"version":"1"}]}`}
	got, err := r.Before(t.Context(), "update-engine")
	want := engine.Report{Engine: "update-engine", State: engine.Needed, Version: "1"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Before: %v (-want +got):\n%s", err, diff)
	}
	api.node.Annotations[v1alpha1.AnnotationEngines] = `{"reported":1}`
	if got, err := r.Before(t.Context(), "update-engine"); err != nil || got != (engine.Report{}) {
		t.Errorf("a record that cannot be read: %v, %v", got, err)
	}
	api.getErr = apierrors.NewNotFound(schema.GroupResource{}, "n1")
	if got, err := r.Before(t.Context(), "update-engine"); err != nil || got != (engine.Report{}) {
		t.Errorf("a Node that is not there: %v, %v", got, err)
	}
	api.getErr = errAPI
	if _, err := r.Before(t.Context(), "update-engine"); !errors.Is(err, errAPI) {
		t.Errorf("a Node that cannot be read: %v", err)
	}
	r.Host.BootIDFile += ".gone"
	if _, err := r.Before(t.Context(), "update-engine"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a boot ID that cannot be read: %v", err)
	}
}

func TestHoldsUpgrades(t *testing.T) {
	grant := func(state protocol.GrantState, bootID string) string { return makeGrant(1, state, bootID).String() }
	progress := func(phase protocol.Phase, bootID string) string { return makeProgress(1, phase, bootID).String() }
	cases := map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"at rest":                        {nil, false},
		"granted":                        {map[string]string{v1alpha1.AnnotationGrant: grant(active, boot)}, true},
		"granted, and rebooted":          {map[string]string{v1alpha1.AnnotationGrant: grant(active, otherBoot)}, true},
		"granted no more":                {map[string]string{v1alpha1.AnnotationGrant: grant(protocol.GrantCancelled, boot)}, false},
		"finished":                       {map[string]string{v1alpha1.AnnotationGrant: grant(protocol.GrantFinished, otherBoot), v1alpha1.AnnotationProgress: progress(rebootingPhase, otherBoot)}, false},
		"draining, whatever the grant":   {map[string]string{v1alpha1.AnnotationProgress: progress(drainingPhase, boot)}, true},
		"rebooting, whatever the grant":  {map[string]string{v1alpha1.AnnotationProgress: progress(rebootingPhase, boot)}, true},
		"aborted":                        {map[string]string{v1alpha1.AnnotationProgress: progress(protocol.PhaseAborted, boot)}, false},
		"paused":                         {map[string]string{v1alpha1.AnnotationPaused: "true"}, true},
		"paused for a reason":            {map[string]string{v1alpha1.AnnotationPaused: "disk swap"}, true},
		"not paused":                     {map[string]string{v1alpha1.AnnotationPaused: "false"}, false},
		"a grant that cannot be read":    {map[string]string{v1alpha1.AnnotationGrant: "{"}, true},
		"a progress that cannot be read": {map[string]string{v1alpha1.AnnotationProgress: "{"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, api, _ := makeReconciler(t, protocol.Record{})
			api.node.Annotations = tc.annotations
			if got := r.HoldsUpgrades(t.Context()); got != tc.want {
				t.Errorf("holds: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestHoldsUpgrades_WhereNobodyKnows(t *testing.T) {
	r, api, _ := makeReconciler(t, protocol.Record{})
	api.getErr = errAPI
	if !r.HoldsUpgrades(t.Context()) {
		t.Error("an unreadable Node does not hold")
	}
	api.getErr = nil
	if err := os.Remove(r.Host.BootIDFile); err != nil {
		t.Fatal(err)
	}
	if !r.HoldsUpgrades(t.Context()) {
		t.Error("an unreadable boot ID does not hold")
	}
}

func TestLogUpgradesLeft(t *testing.T) {
	r, api, _ := makeReconciler(t, protocol.Record{})
	r.LogUpgradesLeft(t.Context(), "stage")
	if got := r.announcer.emitted(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning UpgradesLeftToHost the host stages updates itself") || !strings.Contains(got[0], `"stage"`) {
		t.Errorf("events %q", got)
	}
	api.getErr = errAPI
	r.LogUpgradesLeft(t.Context(), "stage")
	if got := r.announcer.emitted(); len(got) > 0 {
		t.Errorf("events %q about a Node that nobody knows", got)
	}
}
