package drain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/agent/volume"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const (
	// crowdedDelay is the pause after "more than one PodDisruptionBudget", which only people put right.
	crowdedDelay = 30 * time.Second
	// denialsAllowed is how often in a row a pod's request may be answered 403. See denied.
	denialsAllowed = 2
)

// progress is the state of a drain. It does nothing: it takes changes in, and states what to do next.
type progress struct {
	listed    bool
	unread    string // why the last LIST failed, while there has been none that did not
	going     map[types.UID]*podState
	left      int                // how many have gone
	deleted   map[types.UID]bool // the pods that a rule with action Delete has removed; they may be gone
	asking    requests
	budgets   budgets
	staying   volumes
	blocking  blockers
	comebacks comebacks
	late      map[types.UID]bool // the pods that keep their node and came after the first LIST
	looks     bool               // nothing is evicted
}

func newProgress() *progress {
	return &progress{
		going: map[types.UID]*podState{}, deleted: map[types.UID]bool{}, asking: requests{},
		budgets: budgets{known: map[types.NamespacedName]budget{}}, staying: volumes{}, blocking: blockers{}, comebacks: newComebacks(),
		late: map[types.UID]bool{},
	}
}

// replace records a LIST: a pod that is not in it is gone, and was before those came that are new in it.
func (p *progress) replace(pods []target) {
	shown := map[types.UID]bool{}
	for _, t := range pods {
		shown[t.uid] = true
	}
	for uid := range p.going {
		if !shown[uid] {
			p.remove(uid)
		}
	}
	maps.DeleteFunc(p.staying, func(uid types.UID, _ []volume.Use) bool { return !shown[uid] })
	maps.DeleteFunc(p.blocking, func(uid types.UID, _ target) bool { return !shown[uid] })
	maps.DeleteFunc(p.late, func(uid types.UID, _ bool) bool { return !shown[uid] })
	p.comebacks.forget(shown)
	for _, t := range pods {
		p.put(t)
	}
	p.listed, p.unread = true, ""
}

// unreadable records that the pods could not be read. Once they have been, what is known of them stays.
func (p *progress) unreadable(err error) {
	if !p.listed {
		p.unread = err.Error()
	}
}

// put records a pod as it is now.
func (p *progress) put(t target) {
	if !t.deleted.IsZero() {
		p.comebacks.goes(p.going[t.uid])
	}
	t = p.comebacks.settle(p.keep(t))
	delete(p.blocking, t.uid)
	if t.blocks {
		p.blocking[t.uid] = t
	}
	if t.decision.action == v1alpha1.DrainSkip {
		p.leave(t.uid)
		if len(t.volumes) > 0 {
			p.staying[t.uid] = t.volumes
		}
		return
	}
	e := p.going[t.uid]
	if e == nil {
		e = &podState{}
		p.going[t.uid] = e
	}
	if e.answer == refused && (e.ready && !t.ready || !maps.Equal(e.labels, t.labels)) {
		e.due = time.Time{} // a budget may let it go as one that is not ready, or does not select it any more
	}
	e.target = t
}

// keep lets a pod stay that keeps its node and came after the first LIST: the drain waits for it. One that was there before, and
// keeps its node since, counts for the next attempt.
func (p *progress) keep(t target) target {
	if p.listed && !p.looks && t.blocks && !p.comebacks.knows(t.uid) {
		p.late[t.uid] = true
	}
	if p.late[t.uid] && t.blocks && t.deleted.IsZero() && t.decision.action != v1alpha1.DrainWaitCompleted {
		t.decision = decision{action: v1alpha1.DrainEvict, order: t.decision.order, undrainable: blockerMessage}
	}
	return t
}

// remove records that a pod is gone.
func (p *progress) remove(uid types.UID) {
	p.comebacks.goes(p.going[uid])
	p.comebacks.remove(uid)
	delete(p.blocking, uid)
	delete(p.late, uid)
	p.leave(uid)
}

// leave records that a pod is no longer in the way.
func (p *progress) leave(uid types.UID) {
	delete(p.staying, uid)
	if _, ok := p.going[uid]; ok {
		delete(p.going, uid)
		p.left++
	}
}

// sent records that a request is under way.
func (p *progress) sent(uid types.UID, now time.Time) {
	p.asking[uid] = now
	p.going[uid].sentAt, p.going[uid].asked = p.budgets.changes, true
}

// took records the pods that go by a rule with action Delete, even where the watch was quicker than the answer. One that was
// terminating before does not.
func (p *progress) took(t target, v verdict) {
	if v == accepted && t.decision.action == v1alpha1.DrainDelete && t.deleted.IsZero() {
		p.deleted[t.uid] = true
	}
}

// answered records the answer to a request. The error is one that ends the drain. jitter is in [0, 1).
func (p *progress) answered(uid types.UID, a answer, now time.Time, jitter float64) error {
	delete(p.asking, uid)
	e := p.going[uid]
	if e == nil {
		return nil // the pod went while the answer was under way
	}
	if e.accepted = a.verdict == accepted; e.accepted {
		return nil
	}
	e.attempts++
	e.due = now.Add(max(backoff(e.attempts, jitter), min(a.retryAfter, lastDelay)))
	if e.answer == refused && a.verdict != refused {
		p.passOn(e, now)
	}
	if a.verdict == failed && e.held() {
		return nil // it reports nothing about the budgets
	}
	e.message, e.answer = a.message, a.verdict
	p.postpone(e, now, jitter)
	if a.verdict == denied {
		e.denials++
	} else {
		e.denials = 0
	}
	if a.verdict == fatal || e.denials > denialsAllowed {
		return fmt.Errorf("evicting pod %q: %s", e.NamespacedName, a.message)
	}
	return nil
}

// postpone sets when a pod is evicted again after some of the answers.
func (p *progress) postpone(e *podState, now time.Time, jitter float64) {
	switch {
	case e.answer == crowded:
		e.due = now.Add(crowdedDelay)
	case e.answer == refused && p.budgets.freed(e):
		e.due = now
	case e.answer == refused && e.ready && p.budgets.refuse(e):
		e.due = now.Add(backoff(mostAttempts, jitter))
	}
}

// done reports whether no pod that must go is left.
func (p *progress) done(now time.Time) bool {
	return p.listed && len(p.going) == 0 && p.asking.patience(now).IsZero()
}

// namespaces lists those of the pods that must go and that are such.
func (p *progress) namespaces(such func(*podState) bool) []string {
	namespaces := map[string]bool{}
	for _, e := range p.going {
		if such(e) {
			namespaces[e.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(namespaces))
}

// sorted is the pods in the order people see them in.
func (p *progress) sorted() []*podState {
	going := make([]*podState, 0, len(p.going))
	for _, e := range p.going {
		going = append(going, e)
	}
	slices.SortFunc(going, byName)
	return going
}

// target is what the drain needs to know of a pod.
type target struct {
	types.NamespacedName
	uid    types.UID
	labels map[string]string
	// deleted is metadata.deletionTimestamp, which is when the grace period ends. Zero: not terminating.
	deleted time.Time
	// finalizers keep the pod although it has terminated.
	finalizers []string
	decision   decision
	// controller is the pod's; "" where it has none.
	controller types.UID
	// tolerates: a cordon does not keep the pod off a node.
	tolerates bool
	// volumes are those of the pod that may be attached to its node.
	volumes []volume.Use
	// blocks: the pod keeps its node, whether it would have to go or not.
	blocks bool
	// pending pods and those that are not ready may get round a budget.
	pending, ready bool
}

// podState is a pod that must go, and how far it is.
type podState struct {
	target
	asked    bool      // a request was sent
	accepted bool      // the API server took the request; the watch reports the rest
	attempts int       // requests in a row that were not accepted
	denials  int       // of these, the last ones that were answered 403
	answer   verdict   // of the last request that was not accepted; a failure does not take the place of a refusal by budgets
	message  string    // why the last request was not accepted, for people
	due      time.Time // the next request is not sent earlier; zero: at once
	sentAt   int       // the change of budgets that was the last when the request was sent
}

// waits reports that nothing is to be sent for the pod: only the watch brings it forward. One that terminates already is asked to be
// quicker where the policy caps its grace period.
func (e *podState) waits() bool {
	return e.accepted || !e.deleted.IsZero() && e.decision.gracePeriod == 0 || e.decision.undrainable != "" ||
		e.decision.action == v1alpha1.DrainWaitCompleted
}

func (e *podState) pod(reason, message string) Pod {
	return Pod{Namespace: e.Namespace, Name: e.Name, UID: e.uid, Reason: reason, Message: message}
}

// held reports whether a budget holds the pod back: those of its namespace are worth a watch.
func (e *podState) held() bool { return e.answer == refused || e.answer == crowded }

// budgeted reports whether the API server would ask PodDisruptionBudgets before it lets the pod go. It does not for one that has not
// started, or for a deletion.
func (e *podState) budgeted() bool {
	return !e.pending && e.deleted.IsZero() && e.decision.undrainable == "" && e.decision.action == v1alpha1.DrainEvict
}

func byName(a, b *podState) int {
	return cmp.Or(compareNames(a.NamespacedName, b.NamespacedName), cmp.Compare(a.uid, b.uid))
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// maxVolumes is more than any node can attach.
const maxVolumes = 1000

// uses lists the volumes of a pod that may be attached to its node. One that has completed has let go.
func uses(pod *corev1.Pod) []volume.Use {
	if completed(pod) {
		return nil
	}
	all := volume.UsesOf(pod)
	return slices.Clone(all[:min(len(all), maxVolumes)])
}

// volumes are those of the pods that stay.
type volumes map[types.UID][]volume.Use

// list has each volume once and in order.
func (v volumes) list() []volume.Use {
	var all []volume.Use
	for _, uses := range v {
		all = append(all, uses...)
	}
	slices.SortFunc(all, func(a, b volume.Use) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Claim.Namespace, b.Claim.Namespace), cmp.Compare(a.Claim.Name, b.Claim.Name))
	})
	return slices.Compact(all)
}
