package worker

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// patchPolicy insists on a change of the policy, and reports whether there was one to change.
func (r *run) patchPolicy(patch string) bool {
	found := false
	r.insist(r.ctx, func() error {
		policy := &v1alpha1.RebootPolicy{}
		policy.Name = r.policy
		err := r.worker.objects.Patch(r.ctx, policy, client.RawPatch(types.MergePatchType, []byte(patch)))
		found = err == nil
		return client.IgnoreNotFound(err)
	})
	return found
}

// opening is when the window is open next, some days on, far from any change of clocks.
func (r *run) opening() (time.Time, error) {
	w := r.schedule.Window
	start, err := time.Parse("15:04", w.Start)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the window: %w", err)
	}
	y, m, d := r.schedule.Begins.AddDate(0, 0, 10).Date()
	return time.Date(y, m, d, start.Hour(), start.Minute()+1, 0, 0, r.worker.zones[w.Zone]), nil
}
