package drain

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// This file says which pods are asked for again because a budget changed.

// budgetChanged takes in a budget's new value and wakes the pods it frees: those it does not cover any more, and as many of
// the others as it allows. While it allows nothing, back-off brings nothing either: the pods are asked for again when it
// changes, or as a net under all this, half a minute after the last news.
func (p *progress) budgetChanged(name types.NamespacedName, next budget, now time.Time) {
	old := p.budgets[name]
	p.changes++
	next.changed = p.changes
	if next.pods == nil {
		delete(p.budgets, name)
	} else {
		p.budgets[name] = next
	}
	for _, e := range p.entries {
		if _, busy := p.asking[e.uid]; busy || e.refusal == none || e.Namespace != name.Namespace {
			continue
		}
		switch {
		case old.covers(e.target) && !next.covers(e.target):
			e.due = now
		case e.refusal == byBudget && next.bars(e):
			e.due = now.Add(lastDelay)
		}
	}
	p.wake(name.Namespace, next, now)
}

// wake has pods that the budget held back asked for again: as many as it allows, less those that took a place since it said
// so, or may take one. More would only earn refusals. A pod that was let go before needs no place any more, though it may be
// on the node for long.
func (p *progress) wake(namespace string, b budget, now time.Time) {
	room, order := b.allowed-p.taken(namespace, b), p.order()
	for _, e := range p.sorted() {
		if room <= 0 {
			return
		}
		if _, busy := p.asking[e.uid]; busy || e.waits() || e.decision.order != order || e.Namespace != namespace {
			continue
		}
		if e.refusal == byBudget && e.sentAt < b.changed && b.covers(e.target) {
			e.due = now
			room--
		}
	}
}

// passOn has others asked for where a pod was woken for a place in a budget and did not take it.
func (p *progress) passOn(e *entry, now time.Time) {
	for name, b := range p.budgets {
		if name.Namespace == e.Namespace && b.covers(e.target) {
			p.wake(name.Namespace, b, now)
		}
	}
}

// taken counts the pods that have taken places of the budget since its last change, or may: requests are under way for them.
func (p *progress) taken(namespace string, b budget) int {
	n := 0
	for uid, e := range p.entries {
		_, busy := p.asking[uid]
		if (busy || e.accepted && e.sentAt >= b.changed) && e.Namespace == namespace && b.covers(e.target) {
			n++
		}
	}
	return n
}

// freed says whether a budget that covers the pod has allowed something since the request that was refused was sent. Then
// the news overtook the refusal, and no more news may come.
func (p *progress) freed(e *entry) bool {
	for name, b := range p.budgets {
		if name.Namespace == e.Namespace && b.changed > e.sentAt && b.allowed > 0 && b.covers(e.target) {
			return true
		}
	}
	return false
}

// barred says whether a budget is known that holds the pod back for as long as it does not change.
func (p *progress) barred(e *entry) bool {
	for name, b := range p.budgets {
		if name.Namespace == e.Namespace && b.bars(e) {
			return true
		}
	}
	return false
}
