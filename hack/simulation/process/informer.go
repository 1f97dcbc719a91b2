package process

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
)

// informer follows one kind, as a reflector does. It lists, watches, is behind and is disconnected. It goes on from the last revision
// it has seen, and lists again where that is compacted.
type informer struct {
	cache.Informer

	process   *Process
	of        apiserver.Key
	transform toolscache.TransformFunc
	random    *Random
	synced    chan struct{}

	mu       sync.Mutex
	objects  map[string]client.Object
	handlers []toolscache.ResourceEventHandler
	calls    []func()
	called   chan struct{}
	// seen is the revision that objects show, awaited one that somebody waits for; news is closed when seen grows.
	seen, awaited int64
	news          chan struct{}
}

// HasSynced implements toolscache.ResourceEventHandlerRegistration.
func (i *informer) HasSynced() bool {
	select {
	case <-i.synced:
		return true
	default:
		return false
	}
}

// AddEventHandlerWithOptions implements cache.Informer. Who comes late is notified of all there is.
func (i *informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	i.handlers = append(i.handlers, h)
	for _, object := range i.inOrder() {
		i.notify(func() { h.OnAdd(object, true) })
	}
	i.mu.Unlock()
	return registration{i}, nil
}

type registration struct{ *informer }

// HasSyncedChecker implements toolscache.ResourceEventHandlerRegistration; nobody asks.
func (registration) HasSyncedChecker() toolscache.DoneChecker { return nil }

// notify lets handlers be called, in order and beside the watch: they may read the cache. The lock is held.
func (i *informer) notify(call func()) {
	i.calls = append(i.calls, call)
	select {
	case i.called <- struct{}{}:
	default:
	}
}

// handle calls the handlers.
func (i *informer) handle(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-i.called:
		}
		i.mu.Lock()
		calls := i.calls
		i.calls = nil
		i.mu.Unlock()
		for _, call := range calls {
			call()
		}
	}
}

func (i *informer) run(ctx context.Context) {
	var handling sync.WaitGroup
	defer handling.Wait()
	handling.Go(func() { i.handle(ctx) })
	watch := i.list(ctx)
	for watch != nil {
		select {
		case <-ctx.Done():
			watch.Close()
			return
		case <-watch.Changed():
		}
		w := i.process.conditions()
		if i.random.Chance(w.Drop) || w.Down {
			i.process.counts.Add("watches dropped")
			watch.Close()
			watch = i.reconnect(ctx, w)
			continue
		}
		Wait(ctx, i.random.Between(0, w.Lag))
		if !i.process.Pass() {
			watch.Close()
			return
		}
		i.take(watch.Take())
	}
}

// reconnect goes on where the watch broke off, or lists.
func (i *informer) reconnect(ctx context.Context, w Conditions) *apiserver.Watch {
	if !i.connects(ctx, w.Gap) {
		return nil
	}
	i.mu.Lock()
	seen := i.seen
	i.mu.Unlock()
	watch, err := i.process.store.Resume(i.of, seen)
	if err != nil {
		i.process.counts.Add("watches compacted")
		return i.list(ctx)
	}
	return watch
}

// connects waits, longer while the API server is down, and reports whether it is up and the process lives.
func (i *informer) connects(ctx context.Context, within time.Duration) bool {
	for Wait(ctx, i.random.Between(0, within)) && i.process.Pass() {
		w := i.process.conditions()
		if !w.Down {
			return true
		}
		within = w.Gap
	}
	return false
}

// list takes all there is instead of what was there. Nil: the process has ended meanwhile.
func (i *informer) list(ctx context.Context) *apiserver.Watch {
	if !i.connects(ctx, i.process.conditions().Latency) {
		return nil
	}
	watch, listed, revision := i.process.store.Watch(i.of)
	there := map[string]bool{}
	for _, object := range listed {
		there[object.GetName()] = true
		i.apply(object.GetName(), object)
	}
	i.mu.Lock()
	gone := i.inOrder()
	i.mu.Unlock()
	for _, object := range gone {
		if !there[object.GetName()] {
			i.apply(object.GetName(), nil)
		}
	}
	i.saw(revision)
	if !i.HasSynced() {
		close(i.synced)
	}
	return watch
}

func (i *informer) take(events []apiserver.Event) {
	for _, e := range events {
		i.apply(e.Name, e.After)
		i.saw(e.Revision)
	}
}

// inOrder are the objects, sorted by name. The lock is held.
func (i *informer) inOrder() []client.Object {
	all := make([]client.Object, 0, len(i.objects))
	for _, name := range slices.Sorted(maps.Keys(i.objects)) {
		all = append(all, i.objects[name])
	}
	return all
}

func (i *informer) saw(revision int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seen = max(i.seen, revision)
	close(i.news)
	i.news = make(chan struct{})
}

// apply puts one object into the cache, or takes it out, and calls the handlers.
func (i *informer) apply(name string, object client.Object) {
	if object != nil {
		object = i.transformed(object)
	}
	i.mu.Lock()
	before := i.objects[name]
	if i.objects[name] = object; object == nil {
		delete(i.objects, name)
	}
	for _, h := range i.handlers {
		switch {
		case object == nil && before != nil:
			i.notify(func() { h.OnDelete(before) })
		case object != nil && before == nil:
			i.notify(func() { h.OnAdd(object, false) })
		case object != nil:
			i.notify(func() { h.OnUpdate(before, object) })
		}
	}
	i.mu.Unlock()
}

// transformed is what the product keeps of an object. It may change what it is given.
func (i *informer) transformed(object client.Object) client.Object {
	if i.transform == nil {
		return object
	}
	copied, _ := object.DeepCopyObject().(client.Object)
	kept, err := i.transform(copied)
	if trimmed, ok := kept.(client.Object); ok && err == nil {
		return trimmed
	}
	return copied
}
