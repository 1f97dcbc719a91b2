package drain

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// podFeed is the state of the stream of the node's pods.
type podFeed struct {
	*run
	selector   string
	namespaces map[string]labels.Set // their labels, looked up once per LIST and the WATCH after it
	version    string                // the resource version to continue from, or empty to LIST first
	stale      bool                  // the labels of namespaces must be read again, with a LIST
}

func (r *run) podFeed() *podFeed {
	return &podFeed{run: r, selector: fields.OneTermEqualSelector("spec.nodeName", r.node).String(), namespaces: map[string]labels.Set{}}
}

// followPods sends all pods of the node, now and later, to the drain: one LIST, and one WATCH from
// there. A WATCH that ends is continued. After one that is too old it starts again with a LIST, and
// so it does after every WATCH if the labels of namespaces matter. It ends with ctx, or with an
// error that ends the drain.
func (r *run) followPods(ctx context.Context) {
	feed := r.podFeed()
	for attempts := 0; ctx.Err() == nil; {
		before, lists := feed.version, feed.lists()
		err := feed.step(ctx)
		if err != nil && !passes(err) {
			r.send(ctx, func(*progress, time.Time) error { return err })
			return
		}
		if !lists && feed.version != "" && feed.version != before {
			attempts = 0 // the watch delivered something
		}
		if err == nil && feed.version != "" && feed.version != before {
			continue
		}
		attempts++
		if err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Reading the node's pods again later", "attempts", attempts)
			r.send(ctx, func(p *progress, _ time.Time) error { p.unreadable(err); return nil })
		}
		lifecycle.Pause(ctx, r.Clock, backoff(attempts, rand.Float64()))
	}
}

// passes reports whether a failed read may be repeated. A read that was refused may not, so that
// the drain fails closed.
func passes(err error) bool { return judge(err).verdict == failed }

// lists reports whether the next step is a LIST.
func (f *podFeed) lists() bool { return f.version == "" || f.stale }

// step reads once. Watching all namespaces from each node would be expensive, so the labels of
// namespaces are read again whenever the watch of the pods has ended.
func (f *podFeed) step(ctx context.Context) error {
	if f.lists() {
		clear(f.namespaces)
		return f.list(ctx)
	}
	err := f.watch(ctx)
	f.stale = err == nil && f.filter.namespaces
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		f.version = ""
		return nil
	}
	return err
}

// read lists the pods of the node, and returns the resource version of the list.
func (f *podFeed) read(ctx context.Context) (pods []target, version string, err error) {
	version, err = f.Pods.pods(ctx, f.selector, func(pod *corev1.Pod) error {
		t, err := f.target(ctx, pod)
		pods = append(pods, t)
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("listing pods: %w", err)
	}
	return pods, version, nil
}

// list sends all pods of the node to the drain.
func (f *podFeed) list(ctx context.Context) error {
	pods, version, err := f.read(ctx)
	if err != nil {
		return err
	}
	f.version, f.stale = version, false
	f.send(ctx, func(p *progress, _ time.Time) error {
		first := !p.listed
		p.replace(pods)
		// Only the first list may end the drain, because later something may have been evicted
		// already. Such a pod then counts as blocked, and people can see it.
		if keeps := append(p.undrainable(), p.blocking.list(blockerMessage)...); first && len(keeps) > 0 && !p.looks {
			return &UndrainableError{Pods: keeps}
		}
		return nil
	})
	return nil
}

func (f *podFeed) watch(ctx context.Context) error {
	w, err := f.Pods.watchPods(ctx, f.selector, f.version)
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	return consume(ctx, w, func(event watch.Event) error { return f.handle(ctx, event) })
}

func (f *podFeed) handle(ctx context.Context, event watch.Event) error {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("watching pods: got a %T", event.Object)
	}
	switch event.Type {
	case watch.Added, watch.Modified:
		t, err := f.target(ctx, pod)
		if err != nil {
			return err
		}
		f.send(ctx, func(p *progress, _ time.Time) error { p.put(t); return nil })
	case watch.Deleted:
		f.send(ctx, func(p *progress, _ time.Time) error { p.remove(pod.UID); return nil })
	case watch.Bookmark, watch.Error:
	}
	f.version = pod.ResourceVersion
	return nil
}

// target decides about a pod and returns what the drain needs of it.
func (f *podFeed) target(ctx context.Context, pod *corev1.Pod) (target, error) {
	t := target{
		uid: pod.UID, labels: selectable(pod.Labels), volumes: uses(pod),
		pending: pod.Status.Phase == corev1.PodPending, ready: ready(pod), tolerates: toleratesCordon(pod),
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && len(owner.UID) <= maxUID {
		t.controller = owner.UID
	}
	t.Namespace, t.Name, t.finalizers = pod.Namespace, pod.Name, message.Names(pod.Finalizers, maxFinalizers)
	if pod.DeletionTimestamp != nil {
		t.deleted = pod.DeletionTimestamp.Time
	}
	namespace, err := f.labelsOf(ctx, pod.Namespace)
	if err != nil {
		return target{}, err
	}
	t.decision, t.blocks = f.filter.decide(pod, namespace), f.filter.blocks(pod, namespace)
	return t, nil
}

// maxSelectable limits the labels of a pod and the selector of a PodDisruptionBudget that are kept,
// in bytes. Larger ones are dropped, and the API server still enforces the budget.
const maxSelectable = 16 << 10

// maxUID is more than a UID has. A user may write a longer one into the owners of a pod.
const maxUID = 64

func selectable(set labels.Set) labels.Set {
	size := 0
	for key, value := range set {
		size += len(key) + len(value)
	}
	if size > maxSelectable {
		return nil
	}
	return set
}

// labelsOf looks up the labels of a namespace. It returns nil if the rules do not depend on them.
func (f *podFeed) labelsOf(ctx context.Context, name string) (labels.Set, error) {
	set, known := f.namespaces[name]
	if known || !f.filter.namespaces {
		return set, nil
	}
	namespace, err := f.Policy.namespace(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("getting namespace %q for the drain rules: %w", name, err)
	}
	f.namespaces[name] = namespace.Labels
	return namespace.Labels, nil
}

// consume passes on the events of a watch until the watch ends or an event is an error.
func consume(ctx context.Context, w watch.Interface, handle func(watch.Event) error) error {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-w.ResultChan():
			if !ok {
				return nil
			}
			if event.Type == watch.Error {
				return apierrors.FromObject(event.Object)
			}
			if err := handle(event); err != nil {
				return err
			}
		}
	}
}

// followBudgets watches the PodDisruptionBudgets of a namespace from its first call on.
func (r *run) followBudgets(ctx context.Context, namespace string) {
	if !r.followed[namespace] {
		r.followed[namespace] = true
		r.group.Go(func() { r.keepBudgets(ctx, namespace) })
	}
}

// keepBudgets watches the budgets of a namespace until ctx ends. A watch without a resource version
// begins with all objects, so it needs no LIST and is never too old. An error does not end the
// drain, because a refused eviction is tried again anyway.
func (r *run) keepBudgets(ctx context.Context, namespace string) {
	for attempts := 1; ctx.Err() == nil; attempts++ {
		delivered, err := r.watchBudgets(ctx, namespace)
		if delivered {
			attempts = 1
		}
		if err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Watching PodDisruptionBudgets again later", "namespace", namespace)
		}
		lifecycle.Pause(ctx, r.Clock, backoff(attempts, rand.Float64()))
	}
}

// watchBudgets follows one watch to its end. delivered reports whether the watch delivered anything.
func (r *run) watchBudgets(ctx context.Context, namespace string) (delivered bool, err error) {
	w, err := r.Policy.watchBudgets(ctx, namespace)
	if err != nil {
		return false, err
	}
	r.send(ctx, func(p *progress, _ time.Time) error { p.budgets.forget(namespace); return nil })
	err = consume(ctx, w, func(event watch.Event) error {
		pdb, ok := event.Object.(*policyv1.PodDisruptionBudget)
		if !ok {
			return nil
		}
		delivered = true
		name, b := types.NamespacedName{Namespace: pdb.Namespace, Name: pdb.Name}, readBudget(pdb)
		if event.Type == watch.Deleted {
			b = budget{}
		}
		r.send(ctx, func(p *progress, now time.Time) error { p.budgetChanged(name, b, now); return nil })
		return nil
	})
	return delivered, err
}
