package lane

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
)

func (r *run) strikePolicy(step schedule.Step) {
	switch step.Kind {
	case schedule.PolicyEdited:
		if r.patchPolicy(fmt.Sprintf(`{"spec":{"concurrency":{"maxUnavailable":%d}}}`, 1+step.Target%4)) {
			r.count(step.Kind, 1)
		}
	case schedule.PolicyPaused:
		if r.patchPolicy(`{"spec":{"pause":{"reason":"chaos"}}}`) {
			r.count(step.Kind, 1)
			r.after(step, func() { r.patchPolicy(`{"spec":{"pause":null}}`) })
		}
	case schedule.PolicyRecreated:
		r.insist(r.ctx, func() error { return r.releasePolicy(r.ctx) })
		pause(r.ctx, step.For/8)
		r.createPolicy(r.schedule.Limit)
		r.count(step.Kind, 1)
	default:
		r.wipeStatus(step)
	}
}

// patchPolicy insists on a change of the policy, and tells whether there was one to change.
func (r *run) patchPolicy(patch string) bool {
	found := false
	r.insist(r.ctx, func() error {
		policy := &v1alpha1.RebootPolicy{}
		policy.Name = r.policy
		err := r.lane.objects.Patch(r.ctx, policy, client.RawPatch(types.MergePatchType, []byte(patch)))
		found = err == nil
		return client.IgnoreNotFound(err)
	})
	return found
}

// wipeStatus removes the status. The API server refuses to let status.seq go, so what goes is everything else.
func (r *run) wipeStatus(step schedule.Step) {
	r.insist(r.ctx, func() error {
		policy := &v1alpha1.RebootPolicy{}
		if err := r.lane.objects.Get(r.ctx, client.ObjectKey{Name: r.policy}, policy); err != nil {
			return client.IgnoreNotFound(err)
		}
		all := policy.DeepCopy()
		all.Status = v1alpha1.RebootPolicyStatus{}
		if err := r.lane.objects.Status().Update(r.ctx, all); err == nil && policy.Status.Seq > 0 {
			r.fail(fmt.Errorf("the API server has let status.seq %d go", policy.Status.Seq))
		}
		policy.Status = v1alpha1.RebootPolicyStatus{Seq: policy.Status.Seq, Limit: policy.Status.Limit}
		err := r.lane.objects.Status().Update(r.ctx, policy)
		if apierrors.IsConflict(err) {
			return err
		}
		if err == nil {
			r.count(step.Kind, 1)
		}
		return client.IgnoreNotFound(err)
	})
}

// opening is when the window is open next, some days on, far from any change of clocks.
func (r *run) opening() (time.Time, error) {
	w := r.schedule.Window
	start, err := time.Parse("15:04", w.Start)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the window: %w", err)
	}
	y, m, d := r.schedule.Begins.AddDate(0, 0, 10).Date()
	return time.Date(y, m, d, start.Hour(), start.Minute()+1, 0, 0, r.lane.zones[w.Zone]), nil
}
