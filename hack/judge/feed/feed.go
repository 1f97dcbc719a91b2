// Package feed collects every revision of watched objects from an API server, as input for a judge.
package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/judge"
)

// Feed holds the revisions that were seen so far.
type Feed struct {
	api   client.WithWatch
	kinds []Kind

	mu      sync.Mutex
	records []judge.Change
	err     error
}

// Kind selects the objects to watch: Nodes, RebootPolicies, pods or PodDisruptionBudgets.
type Kind struct {
	List    client.ObjectList
	Options []client.ListOption
}

// Watch collects the existing objects and all later revisions until ctx ends. It reopens watches
// that end early.
func Watch(ctx context.Context, api client.WithWatch, kinds ...Kind) (*Feed, error) {
	f := &Feed{api: api, kinds: kinds}
	for _, k := range kinds {
		k.List = k.List.DeepCopyObject().(client.ObjectList) // a separate list, because Await uses the other one
		w := &watched{feed: f, kind: k, there: map[types.UID]bool{}}
		present, err := f.list(ctx, k)
		if err != nil {
			return nil, err
		}
		for _, object := range present {
			w.take(watch.Event{Type: watch.Added, Object: object})
		}
		events, err := w.open(ctx, k.List.GetResourceVersion())
		if err != nil {
			return nil, err
		}
		go w.follow(ctx, events)
	}
	return f, nil
}

// watched is the state of the goroutine that watches one kind.
type watched struct {
	feed *Feed
	kind Kind
	// seen is the newest revision received. there holds the objects that had not been deleted by
	// then.
	seen  int64
	there map[types.UID]bool
}

func (w *watched) open(ctx context.Context, revision string) (watch.Interface, error) {
	events, err := watchtools.NewRetryWatcherWithContext(ctx, revision, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return w.feed.api.Watch(ctx, w.kind.List, w.kind.with(&options)...)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", w.kind.List, err)
	}
	return events, nil
}

// follow receives revisions until the watch ends for good.
func (w *watched) follow(ctx context.Context, events watch.Interface) {
	err := errors.New("a watch has ended")
	for events != nil {
		expired := false
		for event := range events.ResultChan() {
			expired = event.Type == watch.Error && apierrors.IsResourceExpired(apierrors.FromObject(event.Object))
			w.take(event)
		}
		if events = nil; expired {
			events, err = w.resume(ctx)
		}
	}
	w.feed.mu.Lock()
	defer w.feed.mu.Unlock()
	w.feed.err = fmt.Errorf("later revisions are not seen: %w", err)
}

// resume opens a new watch after the API server dropped the last revision from its watch cache, for
// example because a definition changed. It reads the revisions in between from the store one by
// one, newest first. It fails if an object was deleted, because deletions cannot be read this way.
func (w *watched) resume(ctx context.Context) (watch.Interface, error) {
	present, err := w.feed.list(ctx, w.kind)
	if err != nil {
		return nil, err
	}
	now, ok := w.kind.List.GetResourceVersion(), map[types.UID]bool{}
	for _, object := range present {
		ok[object.GetUID()] = true
	}
	var missed []client.Object
	for len(present) > 0 {
		newest := slices.MaxFunc(present, func(a, b client.Object) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
		if revisionOf(newest) <= w.seen {
			break
		}
		missed = append(missed, newest)
		past := w.kind
		past.Options = w.kind.with(&metav1.ListOptions{
			ResourceVersion: strconv.FormatInt(revisionOf(newest)-1, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		})
		if present, err = w.feed.list(ctx, past); err != nil {
			return nil, err
		}
		for _, object := range present {
			w.there[object.GetUID()] = true
		}
	}
	for uid := range w.there {
		if !ok[uid] {
			return nil, fmt.Errorf("an object of %T was deleted while no watch was open", w.kind.List)
		}
	}
	slices.Reverse(missed)
	for _, object := range missed {
		w.take(watch.Event{Type: watch.Modified, Object: object})
	}
	return w.open(ctx, now)
}

func (w *watched) take(event watch.Event) {
	object, ok := event.Object.(client.Object)
	if !ok {
		return
	}
	w.seen = max(w.seen, revisionOf(object))
	w.there[object.GetUID()] = true
	if event.Type == watch.Deleted {
		delete(w.there, object.GetUID())
	}
	w.feed.take(event.Type, object)
}

// with returns the options of the kind plus the given ones.
func (k Kind) with(options *metav1.ListOptions) []client.ListOption {
	return append(slices.Clip(k.Options), &client.ListOptions{Raw: options})
}

// revisionOf returns the resourceVersion as a number, which it is on a real API server.
func revisionOf(object client.Object) int64 {
	revision, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	return revision
}

func (f *Feed) take(event watch.EventType, object client.Object) {
	r := judge.ChangeOf(object, time.Now(), event == watch.Deleted)
	r.Revision = revisionOf(object)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records = append(f.records, r)
}

// poll is the interval at which Await lists the objects.
const poll = 20 * time.Millisecond

// Await waits until the history includes the current revision of every object, and returns it.
func (f *Feed) Await(ctx context.Context) (history []judge.Change, err error) {
	err = wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		var present []client.Object
		for _, k := range f.kinds {
			objects, err := f.list(ctx, k)
			if err != nil {
				return false, err
			}
			present = append(present, objects...)
		}
		history, err = f.history(present)
		return history != nil, err
	})
	return history, err
}

func (f *Feed) list(ctx context.Context, k Kind) (objects []client.Object, err error) {
	if err := f.api.List(ctx, k.List, k.Options...); err != nil {
		return nil, fmt.Errorf("listing %T: %w", k.List, err)
	}
	return objects, meta.EachListItem(k.List, func(object runtime.Object) error {
		objects = append(objects, object.DeepCopyObject().(client.Object))
		return nil
	})
}

// Since returns the records after the first n.
func (f *Feed) Since(n int) []judge.Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.records[n:])
}

// history returns all records in the order of the store if they include the present revisions, or
// else nil. An error means that they never will.
func (f *Feed) history(present []client.Object) ([]judge.Change, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, object := range present {
		if !slices.ContainsFunc(f.records, func(r judge.Change) bool {
			return r.Name == object.GetName() && strconv.FormatInt(r.Revision, 10) == object.GetResourceVersion()
		}) {
			return nil, f.err
		}
	}
	records := slices.Clone(f.records)
	slices.SortStableFunc(records, func(a, b judge.Change) int { return cmp.Compare(a.Revision, b.Revision) })
	return records, nil
}
