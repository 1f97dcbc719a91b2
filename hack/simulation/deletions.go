package simulation

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	// busyLook is how often somebody looks whether a node is busy, to delete it then.
	busyLook = time.Minute
)

// deleteNode deletes a Node. Its kubelet registers it anew, or the machine goes too and maybe another one comes. False: there
// is none.
func (i injector) deleteNode(m *machine, d Fault) bool {
	if !i.store.Delete(apiserver.Key{Kind: apiserver.Nodes, Name: m.name}, judge.Admin) {
		return false
	}
	if d.Number > alone {
		m.scrap()
	}
	i.background(func() {
		switch {
		case !process.Wait(i.ctx, d.For), d.Number == never:
		case d.Number > alone:
			i.must(m.provide(i.ctx))
			if process.Wait(i.ctx, m.random.Between(0, 20*time.Minute)) && d.Number == oldImage {
				m.stage()
			}
		default:
			m.join(m.currentBoot(), false)
		}
	})
	return true
}

// deleteBusy deletes a Node as soon as its agent is at work within three days.
func (i injector) deleteBusy(m *machine, d Fault) {
	for range int(3 * day / busyLook) {
		object, err := i.store.Get(apiserver.Key{Kind: apiserver.Nodes, Name: m.name})
		if node, ok := object.(*corev1.Node); err == nil && ok && outstanding(node) && node.Annotations[v1alpha1.AnnotationProgress] != "" {
			if process.Wait(i.ctx, m.random.Between(0, 2*busyLook)) && i.deleteNode(m, d) {
				i.counts.Add(string(DeleteBusy))
			}
			return
		}
		if !process.Wait(i.ctx, busyLook) || i.conditions.isCalm() {
			return
		}
	}
}

// deletePolicy deletes a policy, and makes it again as it was in the beginning once it is gone. False: there is none.
func (i injector) deletePolicy(as *v1alpha1.RebootPolicy, d Fault) bool {
	if i.store.DeletePolicy(as.Name, metav1.Now().Rfc3339Copy(), judge.Admin) != nil {
		return false
	}
	i.background(func() {
		for wait := d.For; process.Wait(i.ctx, wait); wait = time.Minute {
			object, err := i.store.Get(apiserver.Key{Kind: apiserver.Policies, Name: as.Name})
			switch {
			case err != nil:
				i.makePolicy(as)
				return
			case object.GetDeletionTimestamp() == nil:
				return // somebody else was faster
			}
		}
	})
	return true
}
