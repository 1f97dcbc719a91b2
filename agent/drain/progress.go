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
	// crowdedDelay is the pause after "more than one PodDisruptionBudget", which only people can
	// fix.
	crowdedDelay = 30 * time.Second
	// denialsAllowed is the number of 403 responses in a row that are tolerated for one pod. See
	// denied.
	denialsAllowed = 2
)

// progress is the state of a drain. It has no effects: it records changes, and says what to do
// next.
type progress struct {
	listed    bool
	unread    string // why the last LIST failed, until one has succeeded
	going     map[types.UID]*podState
	evicted   int                // the number of pods that have left
	deleted   map[types.UID]bool // pods that a rule with action Delete has removed
	asking    requests
	budgets   budgets
	staying   volumes
	blocking  blockers
	comebacks comebacks
	late      map[types.UID]bool // pods that appeared after the first LIST and must not be disrupted
	looks     bool               // true for a check, which evicts nothing
}

func newProgress() *progress {
	return &progress{
		going: map[types.UID]*podState{}, deleted: map[types.UID]bool{}, asking: requests{},
		budgets: newBudgets(), staying: volumes{}, blocking: blockers{}, comebacks: newComebacks(),
		late: map[types.UID]bool{},
	}
}

// replace records a LIST. Pods that are not in it are gone, and they had left before the new ones
// came.
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

// unreadable records that the pods could not be read. Once they have been read, the known pods
// stay.
func (p *progress) unreadable(err error) {
	if !p.listed {
		p.unread = err.Error()
	}
}

// put records the current state of a pod.
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
		e.due = time.Time{} // a budget may now permit its eviction, or not select it any more
	}
	e.target = t
}

// keep makes the drain wait for a pod that appeared after the first LIST and must not be disrupted.
// A pod that was there before counts from the next attempt on.
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

// leave records that a pod does not hold up the drain any more.
func (p *progress) leave(uid types.UID) {
	delete(p.staying, uid)
	if _, ok := p.going[uid]; ok {
		delete(p.going, uid)
		p.evicted++
	}
}

// sent records that a request is under way.
func (p *progress) sent(uid types.UID, now time.Time) {
	p.asking[uid] = now
	p.going[uid].sentAt, p.going[uid].asked = p.budgets.changes, true
}

// took counts the pods that a rule with action Delete removes, even if the watch was faster than
// the response. Pods that were already terminating do not count.
func (p *progress) took(t target, v verdict) {
	if v == accepted && t.decision.action == v1alpha1.DrainDelete && t.deleted.IsZero() {
		p.deleted[t.uid] = true
	}
}

// answered records the response to a request. It returns an error if the drain has to end. jitter
// is in [0, 1).
func (p *progress) answered(uid types.UID, a answer, now time.Time, jitter float64) error {
	delete(p.asking, uid)
	e := p.going[uid]
	if e == nil {
		return nil // the pod has left before the response arrived
	}
	if e.accepted = a.verdict == accepted; e.accepted {
		return nil
	}
	if e.attempts == 0 {
		e.failedAt = now
	}
	e.attempts++
	e.due = now.Add(max(backoff(e.attempts, jitter), min(a.retryAfter, lastDelay)))
	if e.answer == refused && a.verdict != refused {
		p.passOn(e, now)
	}
	if a.verdict == failed && e.held() {
		return nil // the response says nothing about the budgets
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

// postpone sets the time of the next request for a pod, after those responses that delay it.
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

// done reports whether all pods that must leave have left.
func (p *progress) done(now time.Time) bool {
	return p.listed && len(p.going) == 0 && p.asking.patience(now).IsZero()
}

// namespaces returns the namespaces of the matching pods among those that must leave.
func (p *progress) namespaces(such func(*podState) bool) []string {
	namespaces := map[string]bool{}
	for _, e := range p.going {
		if such(e) {
			namespaces[e.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(namespaces))
}

// sorted returns the pods in the order in which they are shown to people.
func (p *progress) sorted() []*podState {
	going := make([]*podState, 0, len(p.going))
	for _, e := range p.going {
		going = append(going, e)
	}
	slices.SortFunc(going, byName)
	return going
}

// target holds what the drain needs to know of a pod.
type target struct {
	types.NamespacedName
	uid    types.UID
	labels map[string]string
	// deleted is metadata.deletionTimestamp, the end of the grace period. It is zero if the pod is
	// not terminating.
	deleted time.Time
	// finalizers names a few of those that keep the pod after it has terminated. A tenant may set any
	// number.
	finalizers string
	decision   decision
	// controller is the UID of the pod's controller, or empty.
	controller types.UID
	// tolerates reports whether the pod tolerates a cordon.
	tolerates bool
	// volumes are the volumes of the pod that may be attached to its node.
	volumes []volume.Use
	// blocks reports whether the pod must not be disrupted, even if it would not have to leave.
	blocks bool
	// pending and ready: pods that are pending or not ready may not need a budget's permission.
	pending, ready bool
}

// podState is a pod that must leave, and its state.
type podState struct {
	target
	asked    bool      // a request was sent
	accepted bool      // the API server accepted the request
	attempts int       // failed requests in a row
	failedAt time.Time // the time of the first of them
	denials  int       // 403 responses in a row, up to the last
	answer   verdict   // to the last failed request; a failure does not replace a refusal by budgets
	message  string    // why the last request was not accepted, for people
	due      time.Time // the earliest time of the next request, or zero
	sentAt   int       // the number of the last change of budgets before the request
}

// waits reports whether no request is needed for the pod, because only the watch can bring news. A
// pod that is already terminating needs one if the policy shortens its grace period.
func (s *podState) waits() bool {
	return s.accepted || !s.deleted.IsZero() && s.decision.gracePeriod == 0 || s.decision.undrainable != "" ||
		s.decision.action == v1alpha1.DrainWaitCompleted
}

func (s *podState) pod(reason, message string) Pod {
	return Pod{Namespace: s.Namespace, Name: s.Name, UID: s.uid, Reason: reason, Message: message}
}

// held reports whether a budget blocks the pod, so that the budgets of its namespace should be
// watched.
func (s *podState) held() bool { return s.answer == refused || s.answer == crowded }

// budgeted reports whether PodDisruptionBudgets apply to the request for the pod. They do not apply
// to pods that have not started, or to deletions.
func (s *podState) budgeted() bool {
	return !s.pending && s.deleted.IsZero() && s.decision.undrainable == "" && s.decision.action == v1alpha1.DrainEvict
}

func byName(a, b *podState) int {
	return cmp.Or(compareNames(a.NamespacedName, b.NamespacedName), cmp.Compare(a.uid, b.uid))
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// maxVolumes is more than a node can attach.
const maxVolumes = 1000

// uses returns the volumes of a pod that may be attached to its node. A completed pod has released
// its volumes.
func uses(pod *corev1.Pod) []volume.Use {
	if completed(pod) {
		return nil
	}
	all := volume.UsesOf(pod)
	return slices.Clone(all[:min(len(all), maxVolumes)])
}

// volumes are the volumes of the pods that stay.
type volumes map[types.UID][]volume.Use

// list returns each volume once, sorted.
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
