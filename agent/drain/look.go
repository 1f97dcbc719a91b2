package drain

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// Findings are the pods that prevent a reboot. Each list is sorted by namespace and name.
type Findings struct {
	// Blocking are the pods that a rule selects and that have not completed. They have no Message.
	Blocking []Pod
	// Kept are the pods that the policy never removes. A Drain would report them and evict nothing.
	Kept []Pod
	// Guarded are the pods that cannot be evicted, even after a cordon: they have two budgets, the
	// status of their budget is unknown, or they have been terminating for too long.
	Guarded []Pod
	// Closed are the pods whose budget allows no eviction even if every pod is healthy. The budget
	// may allow evictions once the node is cordoned.
	Closed []Pod
	// Refused are the other pods whose budget allows no eviction now. They are only found if
	// PodRules.Refused is set.
	Refused []Pod
}

// Named names the first few pods for a report, or returns nil without any.
func Named(pods []Pod) *protocol.NamedPods {
	if len(pods) == 0 {
		return nil
	}
	list := &protocol.NamedPods{Count: int32(len(pods))}
	for _, p := range pods[:min(len(pods), protocol.MaxNamedPods)] {
		list.Pods = append(list.Pods, protocol.NamedPod{
			Pod: fmt.Sprintf("%s/%s", p.Namespace, p.Name), Why: message.Shorten(protocol.MaxPodReasonBytes, p.Message),
		})
	}
	return list
}

// Look checks the pods once. It costs one LIST of the node's pods, and one of the
// PodDisruptionBudgets of each namespace with pods that a budget could protect. If a selector needs
// the labels of namespaces, it also costs one GET for each.
func (d *Drainer) Look(ctx context.Context, node string, q PodRules) (Findings, error) {
	var found Findings
	err := d.look(ctx, node, q, true, func(f Findings) { found = f })
	return found, err
}

// Follow checks the pods until ctx ends. It calls report with the first findings and with each
// change, from the goroutine that called Follow. It returns ctx's error, wrapped, or the error that
// ended it.
//
// It costs what Look costs, plus a watch of the node's pods. It also watches the budgets of
// namespaces in which a budget blocks a pod for good, to notice when that is fixed. A budget that
// begins to block is noticed by the next Look. If a selector needs the labels of namespaces, it
// lists the pods and gets the namespaces again after each watch, which takes five minutes.
func (d *Drainer) Follow(ctx context.Context, node string, q PodRules, report func(Findings)) error {
	return d.look(ctx, node, q, false, report)
}

func (d *Drainer) look(ctx context.Context, node string, q PodRules, once bool, report func(Findings)) error {
	r, err := d.newRun(node, q)
	if err != nil {
		return err
	}
	if err := r.look(ctx, once, q.Refused, report); err != nil {
		return fmt.Errorf("looking at the pods of node %q: %w", node, err)
	}
	return nil
}

func (r *run) look(ctx context.Context, once, refused bool, report func(Findings)) error {
	ctx, stop := context.WithCancel(ctx)
	defer r.group.Wait()
	defer stop()
	if once {
		r.group.Go(func() { r.listPods(ctx) })
	} else {
		r.group.Go(func() { r.followPods(ctx) })
	}
	p := newProgress()
	p.looks = true
	done := map[string]bool{}
	shown, known := Findings{}, false
	for {
		for _, namespace := range p.namespaces((*podState).budgeted) {
			if _, asked := done[namespace]; !asked {
				done[namespace] = false
				r.group.Go(func() { r.listBudgets(ctx, namespace, done) })
			}
		}
		f, changes := p.findings(r.Clock.Now())
		if refused {
			f.Refused = p.refusedNow()
		}
		if p.listed && allListed(done) && (!known || !reflect.DeepEqual(f, shown)) {
			shown, known = f, true
			report(f)
		}
		if known && once {
			return nil
		}
		for _, pod := range slices.Concat(shown.Guarded, shown.Closed, shown.Refused) {
			r.followBudgets(ctx, pod.Namespace)
		}
		if err := r.await(ctx, p, changes); err != nil {
			return err
		}
	}
}

func allListed(done map[string]bool) bool {
	return !slices.Contains(slices.Collect(maps.Values(done)), false)
}

// listPods reads the node's pods once.
func (r *run) listPods(ctx context.Context) {
	if err := r.podFeed().list(ctx); err != nil {
		r.send(ctx, func(*progress, time.Time) error { return err })
	}
}

// listBudgets reads the PodDisruptionBudgets of one namespace, and records that it has.
func (r *run) listBudgets(ctx context.Context, namespace string, done map[string]bool) {
	err := r.Policy.budgets(ctx, namespace, func(b *policyv1.PodDisruptionBudget) error {
		name, next := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}, readBudget(b)
		r.send(ctx, func(p *progress, now time.Time) error { p.budgetChanged(name, next, now); return nil })
		return nil
	})
	r.send(ctx, func(*progress, time.Time) error {
		if err != nil {
			return fmt.Errorf("listing PodDisruptionBudgets of namespace %q: %w", namespace, err)
		}
		done[namespace] = true
		return nil
	})
}
