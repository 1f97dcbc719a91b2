package controllers

import (
	"context"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// noPolicies is a cluster without policies.
type noPolicies struct{ client.Client }

func (noPolicies) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.RebootPolicyList).Items = nil
	return nil
}

// Every event of a Node has the next pass read it, also a heartbeat, which causes none: a write that carries the resourceVersion from
// before it would be refused.
func TestNodeChanged_NotesEveryEvent(t *testing.T) {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	before, beats, cordoned := nodeOfVersion("a", 1), nodeOfVersion("a", 1), nodeOfVersion("a", 1)
	beats.ResourceVersion = "2"
	beats.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, LastHeartbeatTime: metav1.Now()}}
	cordoned.Spec.Unschedulable = true
	for name, tc := range map[string]struct {
		happens func(f *fleetReader, q queue)
		queued  int
	}{
		"created": {func(f *fleetReader, q queue) {
			f.nodeChanged().Create(t.Context(), event.CreateEvent{Object: &before}, q)
		}, 1},
		"cordoned": {func(f *fleetReader, q queue) {
			f.nodeChanged().Update(t.Context(), event.UpdateEvent{ObjectOld: &before, ObjectNew: &cordoned}, q)
		}, 1},
		"heartbeat": {func(f *fleetReader, q queue) {
			f.nodeChanged().Update(t.Context(), event.UpdateEvent{ObjectOld: &before, ObjectNew: &beats}, q)
		}, 0},
		"deleted": {func(f *fleetReader, q queue) {
			f.nodeChanged().Delete(t.Context(), event.DeleteEvent{Object: &before}, q)
		}, 1},
		"noted by itself": {func(f *fleetReader, q queue) {
			f.nodeNoted().Update(t.Context(), event.UpdateEvent{ObjectOld: &before, ObjectNew: &cordoned}, q)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fleetReader{client: noPolicies{}}
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			tc.happens(f, q)
			_, noted := f.changed.Load("a")
			if diff := gocmp.Diff([]any{true, tc.queued}, []any{noted, q.Len()}); diff != "" {
				t.Errorf("noted, and how many passes are due (-want +got):\n%s", diff)
			}
		})
	}
}
