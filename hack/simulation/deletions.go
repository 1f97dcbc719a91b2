package simulation

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

const (
	// alone is up to which number of a fault a Node is deleted and its machine stays, never the one at which none comes after it.
	alone = 2
	never = 5
	// oldImage is the number at which the machine that comes instead has an old image, and soon an update.
	oldImage = 4
	// busyLook is how often a fault that waits for a busy node or policy looks for one, within busyWithin.
	busyLook, busyWithin = time.Minute, 3 * day
)

// deleteNode deletes a Node. Its kubelet registers it anew, or the machine goes too and maybe another one comes. False: there
// is none.
func (i injector) deleteNode(h *host, d Fault) bool {
	if i.store.Delete(apiserver.Key{Kind: apiserver.Nodes, Name: h.name}, judge.Admin) != nil {
		return false
	}
	if d.Number > alone {
		h.Scrap()
		h.cutPower()
	}
	i.Go(func() {
		switch {
		case !process.Wait(i.ctx, d.For), d.Number == never:
		case d.Number > alone:
			h.Provide()
			i.must(h.boot())
			if process.Wait(i.ctx, h.random.Between(0, 20*time.Minute)) && d.Number == oldImage {
				h.Stage()
			}
		default:
			h.join(h.BootID(), false)
		}
	})
	return true
}

// deleteBusy deletes a Node as soon as its agent is at work.
func (i injector) deleteBusy(h *host, d Fault) bool {
	return i.await(busyLook, busyWithin, func() bool {
		node, there := apiserver.Read[*corev1.Node](i.store, h.name)
		return there && judge.Outstanding(node) && node.Annotations[v1alpha1.AnnotationProgress] != ""
	}) && process.Wait(i.ctx, h.random.Between(0, 2*busyLook)) && i.deleteNode(h, d)
}

// granted waits until a policy has granted something, and for a while after that, and reports whether it has.
func (i injector) granted(as *v1alpha1.RebootPolicy, after time.Duration) bool {
	return i.await(busyLook, busyWithin, func() bool {
		policy, there := apiserver.Read[*v1alpha1.RebootPolicy](i.store, as.Name)
		return there && len(policy.Status.Grants) > 0
	}) && process.Wait(i.ctx, after)
}

// deletePolicy deletes a policy, and makes it again as it was in the beginning once it is gone. False: there is none.
func (i injector) deletePolicy(as *v1alpha1.RebootPolicy, d Fault) bool {
	if i.store.Delete(apiserver.Key{Kind: apiserver.Policies, Name: as.Name}, judge.Admin) != nil {
		return false
	}
	i.Go(func() {
		for wait := d.For; process.Wait(i.ctx, wait); wait = time.Minute {
			switch policy, there := apiserver.Read[*v1alpha1.RebootPolicy](i.store, as.Name); {
			case !there:
				i.makePolicy(as)
				return
			case policy.DeletionTimestamp == nil:
				return // another fault has made it
			}
		}
	})
	return true
}
