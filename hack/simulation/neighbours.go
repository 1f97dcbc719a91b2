package simulation

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// This file has odd machines, and what other programs do to Nodes. Most of it goes on until the
// operator has coped with it. If it does not cope, the world never settles.

// copeLook is the interval at which such a fault checks whether the operator has coped.
const copeLook = 10 * time.Minute

// budget plays the PodDisruptionBudget of the pods on a Node. It is open or closed.
type budget struct {
	mu      sync.Mutex
	closed  bool
	opens   bool // once the node is cordoned
	changed chan struct{}
}

// close closes the budget. If opens is set, it opens once the node is cordoned.
func (b *budget) close(opens bool) { b.set(true, opens) }

func (b *budget) open() { b.set(false, false) }

func (b *budget) set(closed, opens bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.opens = closed, opens
	close(b.changed)
	b.changed = make(chan struct{})
}

// look returns what an agent finds, and a channel that is closed when that changes.
func (b *budget) look() (found drain.Findings, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		found.Closed = []drain.Pod{{Namespace: "default", Name: "db", Message: "its budget is closed"}}
	}
	return found, b.changed
}

// await plays the drain of a cordoned node. It waits until the budget is open, and returns false if
// ctx ends before.
func (b *budget) await(ctx context.Context) bool {
	b.mu.Lock()
	opens := b.opens
	b.mu.Unlock()
	if opens {
		b.open()
	}
	for ctx.Err() == nil {
		found, changed := b.look()
		if len(found.Closed) == 0 {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return false
}

// closeBudget closes the budget of a node.
func (i injector) closeBudget(h *host, d Fault) bool {
	opens := d.Number%2 == 1
	h.budget.close(opens)
	if !opens {
		i.Go(func() {
			process.Wait(i.ctx, d.For)
			h.budget.open()
		})
	}
	return true
}

// untilCoped returns a function that reports whether the Node still exists and the given function
// still returns false for it.
func (i injector) untilCoped(h *host, so func(*corev1.Node) bool) func() bool {
	node, ok := apiserver.Read[*corev1.Node](i.store, h.name)
	return func() bool {
		now, still := apiserver.Read[*corev1.Node](i.store, h.name)
		return ok && still && now.UID == node.UID && !so(now)
	}
}

// cope waits until so returns true for a Node, or the Node is gone.
func (i injector) cope(h *host, so func(*corev1.Node) bool) {
	for waits := i.untilCoped(h, so); waits() && process.Wait(i.ctx, copeLook); {
	}
}

// isIdle reports whether the host is up and its Node is not in an attempt.
func (i injector) isIdle(h *host) bool {
	node, ok := apiserver.Read[*corev1.Node](i.store, h.name)
	return ok && h.IsUp() && !judge.Outstanding(node) && len(judge.Unfinished(node)) == 0
}

// restore starts a machine from a snapshot of the boot before its last reboot, so that the progress
// on its Node names the boot ID of the machine again.
func (i injector) restore(h *host, _ Fault) bool {
	node, ok := apiserver.Read[*corev1.Node](i.store, h.name)
	if !ok || !i.isIdle(h) {
		return false
	}
	id, err := h.Restore(node)
	i.must(err)
	if id == "" {
		return false
	}
	h.comeUp(id)
	return true
}

// keepBootID makes a machine keep its boot ID over its next reboot.
func (i injector) keepBootID(h *host, _ Fault) bool {
	if !i.isIdle(h) || h.IsOdd() {
		return false
	}
	boots := h.Boots()
	h.KeepBootID(true)
	h.Stage()
	i.Go(func() {
		h.showUptime(i.untilCoped(h, func(*corev1.Node) bool { return h.Boots() > boots && i.isIdle(h) }))
		h.KeepBootID(false)
	})
	return true
}

// letNeedReturn makes a need come back after each boot, until the operator grants no more reboots
// for it.
func (i injector) letNeedReturn(h *host, _ Fault) bool {
	if !i.isIdle(h) || h.Unfinished() != "" || h.IsOdd() {
		return false
	}
	h.LetNeedReturn()
	h.Stage()
	i.Go(func() {
		h.showUptime(i.untilCoped(h, func(node *corev1.Node) bool {
			return v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootPermitted).Reason == string(v1alpha1.ReasonUpdateNotApplied)
		}))
		h.Repair()
	})
	return true
}

// fillAnnotations fills the annotations of a Node until the Node shows that its host needs a reboot.
func (i injector) fillAnnotations(h *host, _ Fault) bool {
	const foreign = "example.com/foreign"
	filled := i.isIdle(h) && h.Unfinished() == "" && apiserver.Change(i.store, h.name, judge.Admin, func(node *corev1.Node) {
		room := apiserver.MostAnnotations - len(foreign) - apiserver.SizeOf(node.Annotations)
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, foreign, strings.Repeat("x", max(room, 0)))
	})
	if !filled {
		return false
	}
	h.Stage()
	i.Go(func() {
		i.cope(h, func(node *corev1.Node) bool {
			return v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootRequired).Status == corev1.ConditionTrue
		})
		apiserver.Change(i.store, h.name, judge.Admin, func(node *corev1.Node) { delete(node.Annotations, foreign) })
	})
	return true
}

// stripGrants drops the grants of a Node from the manager's writes until one was withdrawn, or until
// a time has passed in which there was none.
func (i injector) stripGrants(h *host, d Fault) bool {
	i.strip(h.name, true)
	i.Go(func() {
		defer i.strip(h.name, false)
		withdrawn, granted := false, true
		for passed := time.Duration(0); !withdrawn && (granted || passed < d.For); passed += copeLook {
			withdrawn, granted = i.ledgersHave(h.name)
			if _, ok := apiserver.Read[*corev1.Node](i.store, h.name); !ok || !process.Wait(i.ctx, time.Minute) {
				return
			}
		}
	})
	return true
}

// ledgersHave reports whether the ledgers have a withdrawn entry of a Node, and whether they have an
// entry that the Node does not show.
func (i injector) ledgersHave(name string) (withdrawn, granted bool) {
	node, ok := apiserver.Read[*corev1.Node](i.store, name)
	for _, policy := range apiserver.ReadAll[*v1alpha1.RebootPolicy](i.store) {
		for _, e := range policy.Status.Grants {
			if e.Node == name {
				withdrawn, granted = withdrawn || e.WithdrawnAt != nil, granted || ok && !judge.Outstanding(node)
			}
		}
	}
	return withdrawn, granted
}

// strip starts or stops dropping the grants of a Node from the manager's writes. A grant that the
// agent has acted on stays.
func (w *World) strip(name string, strips bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stripped[name] = strips; !strips {
		delete(w.stripped, name)
	}
}

// mutate plays a mutating policy, which resets the annotations in a write of a grant.
func (w *World) mutate(by string, before, after client.Object) {
	w.mu.Lock()
	strips := w.stripped[after.GetName()]
	w.mu.Unlock()
	node, ok := after.(*corev1.Node)
	if !ok || !strips || by != v1alpha1.FieldOwnerManager {
		return
	}
	grant, err := protocol.ParseGrant(node.Annotations)
	progress, progressErr := protocol.ParseProgress(node.Annotations)
	if err == nil && grant != nil && progressErr == nil && (progress == nil || progress.Seq < grant.Seq) {
		node.Annotations = maps.Clone(before.GetAnnotations())
	}
}
