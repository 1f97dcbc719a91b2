package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/reading"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
)

const (
	// calm is the wait for more changes, because writes often come in groups.
	calm = 100 * time.Millisecond
	// mostTorn is the number of views in a row that are skipped because one watch is ahead of the
	// other.
	mostTorn = 10
	// leasePace is the interval at which the manager's Lease is read.
	leasePace = 5 * time.Second
)

// watch shows the fleet at the start, after every change, when time alone changes something, and
// after each period without a change unless every is 0. It returns nil when the context ends.
func watch(ctx context.Context, s *Session, every time.Duration, show func(f fleet.Fleet, trouble string)) error {
	w := &watcher{session: s, changed: make(chan struct{}, 1), failed: map[string]string{}}
	if err := w.start(ctx); err != nil {
		return err
	}
	w.session.manager = fleet.Manager{} // the drawn fleet has its own
	for torn := 0; ctx.Err() == nil; {
		f, err := w.fleet(ctx)
		if err != nil {
			return err
		}
		if f.Torn() && torn < mostTorn {
			torn++
			w.wait(ctx, calm)
			continue
		}
		torn = 0
		show(f, cmp.Or(w.trouble(), f.Manager.Trouble(f.Now)))
		w.wait(ctx, untilNext(f, every))
	}
	return nil
}

// untilNext returns the time until something may change without an event, or 0 if nothing will.
func untilNext(f fleet.Fleet, every time.Duration) time.Duration {
	next := f.Next()
	if next.IsZero() {
		return every
	}
	until := max(next.Sub(f.Now), 0) + 10*time.Millisecond
	if every > 0 {
		return min(every, until)
	}
	return until
}

// watcher keeps policies and nodes up to date.
type watcher struct {
	session *Session
	cache   cache.Cache
	changed chan struct{}

	mu sync.Mutex
	// failed holds the last error of each request path.
	failed map[string]string

	// live reads the manager's Lease. It changes every two seconds, so a watch would wake up too
	// often.
	live    client.Client
	manager fleet.Manager
	readAt  time.Time
}

func (w *watcher) start(ctx context.Context) error {
	config, err := w.session.restConfig()
	if err != nil {
		return err
	}
	if w.live, err = w.session.client(); err != nil {
		return err
	}
	config.Wrap(w.listen)
	scheme, mapper, err := kinds()
	if err != nil {
		return err
	}
	w.cache, err = cache.New(config, cache.Options{
		Scheme: scheme, Mapper: mapper,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: snapshot.Transform(fleet.Shown...)}},
	})
	if err != nil {
		return fmt.Errorf("making a cache: %w", err)
	}
	for _, kind := range []client.Object{&corev1.Node{}, &v1alpha1.RebootPolicy{}} {
		informer, err := w.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching: %w", err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { w.wake() }, DeleteFunc: func(any) { w.wake() },
			UpdateFunc: func(before, after any) {
				if showsMore(before, after) {
					w.wake()
				}
			},
		}); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	go func() {
		// It ends with the context and returns no other error.
		_ = w.cache.Start(ctx)
	}()
	w.cache.WaitForCacheSync(ctx)
	return nil
}

// showsMore reports whether an update is more than a heartbeat. The trimmed Nodes have no heartbeat
// times.
func showsMore(before, after any) bool {
	was, isNode := before.(*corev1.Node)
	node, stays := after.(*corev1.Node)
	if !isNode || !stays {
		return true
	}
	beat := *was
	beat.ResourceVersion = node.ResourceVersion
	return !equality.Semantic.DeepEqual(&beat, node)
}

func (w *watcher) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// listen records failing requests. The watches retry by themselves, and do not report most
// failures.
func (w *watcher) listen(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		switch {
		case r.Context().Err() != nil:
		case err != nil:
			w.note(r.URL.Path, err.Error())
		case response.StatusCode >= http.StatusBadRequest && response.StatusCode != http.StatusGone: // expected: the watch starts over
			w.note(r.URL.Path, response.Status)
		default:
			w.note(r.URL.Path, "")
		}
		return response, err
	})
}

// roundTripper makes a function an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// note records the error of a path, or its end if failure is empty.
func (w *watcher) note(path, failure string) {
	w.mu.Lock()
	changed := w.failed[path] != failure
	w.failed[path] = failure
	w.mu.Unlock()
	if changed {
		w.wake()
	}
}

// trouble says why the view may be outdated, or returns "".
func (w *watcher) trouble() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(w.failed)) {
		if w.failed[path] != "" {
			return "this may be out of date, because the API server cannot be watched: " + w.failed[path]
		}
	}
	return ""
}

func (w *watcher) fleet(ctx context.Context) (fleet.Fleet, error) {
	policies, err := reading.Policies(ctx, w.cache)
	if err != nil {
		return fleet.Fleet{}, err
	}
	var nodes corev1.NodeList
	if err := w.cache.List(ctx, &nodes); err != nil {
		return fleet.Fleet{}, fmt.Errorf("listing nodes: %w", err)
	}
	f := fleet.New(policies, nodes.Items, w.session.Clock.Now())
	if f.Now.Sub(w.readAt) >= leasePace {
		w.manager, w.readAt = readManager(ctx, w.live), f.Now
	}
	f.Manager = w.manager
	return f, nil
}

// wait waits for a change and then until no more changes come, or at most for the given time unless
// that is 0.
func (w *watcher) wait(ctx context.Context, most time.Duration) {
	var over <-chan time.Time
	if most > 0 {
		timer := w.session.Clock.NewTimer(most)
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-over:
	case <-w.changed:
		lifecycle.Pause(ctx, w.session.Clock, calm)
	}
}
