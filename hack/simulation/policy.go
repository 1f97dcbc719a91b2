package simulation

import (
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// onceBusy strikes a policy as soon as it has granted something within three days.
func (w *World) onceBusy(name string, what What, strike func() bool) {
	for range int(3 * day / busyLook) {
		if policy := w.policy(name); policy != nil && len(policy.Status.Grants) > 0 {
			if strike() {
				w.counts.Add(string(what))
			}
			return
		}
		if !process.Wait(w.ctx, busyLook) || w.isCalm() {
			return
		}
	}
}

// wipeStatus takes from a status all that the API server lets go. False: there is no policy.
func (w *World) wipeStatus(name string) bool {
	policy := w.policy(name)
	if policy == nil {
		return false
	}
	policy.Status = v1alpha1.RebootPolicyStatus{Seq: policy.Status.Seq, Limit: policy.Status.Limit}
	_, err := w.store.PutPolicyStatus(policy, judge.Admin)
	return err == nil
}

// policy is one as it is now; nil: there is none.
func (w *World) policy(name string) *v1alpha1.RebootPolicy {
	object, err := w.store.Get(apiserver.Key{Kind: apiserver.Policies, Name: name})
	if policy, ok := object.(*v1alpha1.RebootPolicy); err == nil && ok {
		return policy
	}
	return nil
}
