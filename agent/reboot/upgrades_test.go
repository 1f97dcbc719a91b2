package reboot

import (
	"os"
	"strings"
	"testing"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

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
		"not granted any more":           {map[string]string{v1alpha1.AnnotationGrant: grant(protocol.GrantCancelled, boot)}, false},
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

func TestHoldsUpgrades_IfTheStateIsUnknown(t *testing.T) {
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

func TestAnnounceUpgradesLeft(t *testing.T) {
	r, api, _ := makeReconciler(t, protocol.Record{})
	r.AnnounceUpgradesLeft(t.Context(), "stage")
	if got := r.announcer.emitted(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning UpgradesLeftToHost the host stages updates itself") || !strings.Contains(got[0], `"stage"`) {
		t.Errorf("events %q", got)
	}
	api.getErr = errAPI
	r.AnnounceUpgradesLeft(t.Context(), "stage")
	if got := r.announcer.emitted(); len(got) > 0 {
		t.Errorf("events %q about a Node that nobody knows", got)
	}
}
