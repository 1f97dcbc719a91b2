package drain

import (
	"context"
	"fmt"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// EvictLeft evicts the pods of a drained node again, and returns those that may not be evicted. The
// others came back to the cordoned node. After the eviction their PodDisruptionBudgets count them
// as disrupted, and the host may go down. Pods that stay by a rule and pods that are not ready are
// left alone.
func (d *Drainer) EvictLeft(ctx context.Context, node string, q PodRules) ([]Pod, error) {
	r, err := d.newRun(node, q)
	if err != nil {
		return nil, err
	}
	pods, _, err := r.podFeed().read(ctx)
	if err != nil {
		return nil, fmt.Errorf("evicting what is left on node %q: %w", node, err)
	}
	var refused []Pod
	for _, t := range pods {
		if t.decision.action != v1alpha1.DrainEvict || t.decision.undrainable != "" || t.blocks || !t.ready || !t.deleted.IsZero() {
			continue
		}
		a := judge(r.request(t).Timeout(requestTimeout).MaxRetries(0).Do(ctx).Error())
		if r.Evictions != nil {
			r.Evictions(a.verdict.result(t.decision.action))
		}
		if a.verdict != accepted && a.verdict != gone && a.verdict != leaving {
			refused = append(refused, (&podState{target: t}).pod(v1alpha1.EventEvictionBlocked, a.message))
		}
	}
	return refused, nil
}
