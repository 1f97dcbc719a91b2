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

// informer follows one kind like a reflector: it lists, watches, lags behind and loses its
// connection. It resumes from the last revision it has seen, and lists again if that is compacted.
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
	// seen is the revision of objects, and awaited a revision that somebody waits for. news is
	// closed when seen grows.
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

// AddEventHandlerWithOptions implements cache.Informer. A late handler is notified of all existing
// objects.
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

// HasSyncedChecker implements toolscache.ResourceEventHandlerRegistration. Nobody calls it.
func (registration) HasSyncedChecker() toolscache.DoneChecker { return nil }

// notify queues a call of a handler. Handlers run in order and outside of the watch, because they
// may read the cache. The caller holds the lock.
func (i *informer) notify(call func()) {
	i.calls = append(i.calls, call)
	select {
	case i.called <- struct{}{}:
	default:
	}
}

// handle runs the queued calls of handlers.
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

// reconnect resumes a broken watch, or lists again.
func (i *informer) reconnect(ctx context.Context, w Conditions) *apiserver.Watch {
	if !i.connects(ctx, w.Gap) {
		return nil
	}
	i.mu.Lock()
	revision := i.seen
	i.mu.Unlock()
	watch, err := i.process.store.Resume(i.of, revision)
	if err != nil {
		i.process.counts.Add("watches compacted")
		return i.list(ctx)
	}
	return watch
}

// connects waits for the connection, longer while the API server is down, and reports whether the
// server is up and the process is alive.
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

// list replaces all objects by those on the server. It returns nil if the process has ended.
func (i *informer) list(ctx context.Context) *apiserver.Watch {
	if !i.connects(ctx, i.process.conditions().Latency) {
		return nil
	}
	watch, objects, revision := i.process.store.Watch(i.of)
	exists := map[string]bool{}
	for _, object := range objects {
		exists[object.GetName()] = true
		i.apply(object.GetName(), object)
	}
	i.mu.Lock()
	gone := i.inOrder()
	i.mu.Unlock()
	for _, object := range gone {
		if !exists[object.GetName()] {
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

// inOrder returns the objects sorted by name. The caller holds the lock.
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

// apply puts one object into the cache or removes it, and notifies the handlers.
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

// transformed returns the object after its transform, which may modify its argument.
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
