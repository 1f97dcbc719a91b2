// Package feed collects what a judge judges by watches of an API server: every revision of the objects that it watches.
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

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/judge"
)

// Feed is what was seen so far.
type Feed struct {
	api   client.WithWatch
	kinds []Kind

	mu      sync.Mutex
	records []judge.Change
	err     error
}

// Kind is one kind of objects to watch: Nodes, RebootPolicies, pods or PodDisruptionBudgets, and which of them.
type Kind struct {
	List    client.ObjectList
	Options []client.ListOption
}

// Watch collects objects, those that are there and all later revisions, until ctx ends. A watch that ends before is opened again.
func Watch(ctx context.Context, api client.WithWatch, kinds ...Kind) (*Feed, error) {
	f := &Feed{api: api, kinds: kinds}
	for _, k := range kinds {
		present, err := f.list(ctx, k)
		if err != nil {
			return nil, err
		}
		for _, object := range present {
			f.take(watch.Event{Type: watch.Added, Object: object})
		}
		events, err := watchtools.NewRetryWatcherWithContext(ctx, k.List.GetResourceVersion(), &cache.ListWatch{
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return api.Watch(ctx, k.List, append(slices.Clip(k.Options), &client.ListOptions{Raw: &options})...)
			},
		})
		if err != nil {
			return nil, fmt.Errorf("watching %T: %w", k.List, err)
		}
		go func() {
			for event := range events.ResultChan() {
				f.take(event)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.err = errors.New("a watch has ended: later revisions are not seen")
		}()
	}
	return f, nil
}

func (f *Feed) take(event watch.Event) {
	object, ok := event.Object.(client.Object)
	if !ok {
		return
	}
	r := judge.ChangeOf(object, time.Now(), event.Type == watch.Deleted)
	r.Revision, _ = strconv.ParseInt(object.GetResourceVersion(), 10, 64) // of a real API server it is a number
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records = append(f.records, r)
}

// poll is how often Await looks at the present.
const poll = 20 * time.Millisecond

// Await is the history as soon as it has everything as it is now.
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

// Since is what has come in after the first n records.
func (f *Feed) Since(n int) []judge.Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.records[n:])
}

// history is all that was seen, in the order of the store, as soon as it has the present revision of each object. Until then it is nil;
// an error means that this never comes.
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
