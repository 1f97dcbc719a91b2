package reboot

import (
	"errors"
	"os"
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
