package process

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
)

// Cache holds copies of the objects that a process watches. It lags behind the API server,
// sometimes for long.
type Cache struct {
	cache.Cache

	informers map[apiserver.Kind]*informer
}

// NewCache returns a cache of the given kinds, or of single named objects. Each object passes
// through its transform.
func NewCache(p *Process, transforms map[apiserver.Key]toolscache.TransformFunc) *Cache {
	c := &Cache{informers: map[apiserver.Kind]*informer{}}
	for of, transform := range transforms {
		c.informers[of.Kind] = &informer{
			process: p, of: of, transform: transform, random: p.random("watch " + string(of.Kind)),
			objects: map[string]client.Object{}, synced: make(chan struct{}), news: make(chan struct{}), called: make(chan struct{}, 1),
		}
	}
	return c
}

// Start implements cache.Informers.
func (c *Cache) Start(ctx context.Context) error {
	var running sync.WaitGroup
	for _, kind := range slices.Sorted(maps.Keys(c.informers)) {
		running.Go(func() { c.informers[kind].run(ctx) })
	}
	running.Wait()
	return nil
}

// WaitForCacheSync implements cache.Informers.
func (c *Cache) WaitForCacheSync(ctx context.Context) bool {
	for _, i := range c.informers {
		select {
		case <-i.synced:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// GetInformer implements cache.Informers.
func (c *Cache) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return c.of(object)
}

func (c *Cache) of(object any) (*informer, error) {
	if i, ok := c.informers[apiserver.KindOf(object)]; ok {
		return i, nil
	}
	return nil, fmt.Errorf("nobody watches a %T", object)
}

// Get implements client.Reader.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	i, err := c.ready(ctx, object)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	current, ok := i.objects[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: string(i.of.Kind)}, key.Name)
	}
	copied, _ := current.DeepCopyObject().(client.Object)
	apiserver.Into(object, copied)
	return nil
}

// List implements client.Reader. It returns copies unless the options say otherwise.
func (c *Cache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	i, err := c.ready(ctx, list)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	var all client.ListOptions
	all.ApplyOptions(options)
	return apiserver.Fill(list, i.inOrder(), all.UnsafeDisableDeepCopy != nil && *all.UnsafeDisableDeepCopy)
}

func (c *Cache) ready(ctx context.Context, object any) (*informer, error) {
	i, err := c.of(object)
	if err != nil {
		return nil, err
	}
	select {
	case <-i.synced:
	case <-ctx.Done():
	}
	if !i.process.Pass() {
		return nil, ErrDead
	}
	return i, ctx.Err()
}

// wrote records that an object was written. Consistent clients wait for that revision.
func (c *Cache) wrote(object client.Object) {
	if i, err := c.of(object); err == nil {
		revision, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
		i.mu.Lock()
		i.awaited = max(i.awaited, revision)
		i.mu.Unlock()
	}
}

// catchUp waits until the cache has the last written revision.
func (c *Cache) catchUp(ctx context.Context, object any) error {
	i, err := c.of(object)
	if err != nil {
		return err
	}
	for {
		i.mu.Lock()
		arrived, news := i.seen >= i.awaited, i.news
		i.mu.Unlock()
		if arrived {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the cache of a %T: %w", object, context.Cause(ctx))
		}
	}
}
