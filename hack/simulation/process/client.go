package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
)

// Client reads from a cache and writes to the API server. Methods that the operator does not call
// are missing and panic.
type Client struct {
	client.Client

	line  line
	cache *Cache
	// consistent makes reads wait until the cache has this client's writes.
	consistent bool
}

// NewClient returns the client of a process's reconciler. If it is consistent, it reads its own
// writes.
func NewClient(p *Process, cache *Cache, consistent bool) *Client {
	return &Client{line: lineOf(p, "reconcile"), cache: cache, consistent: consistent}
}

// Get implements client.Reader.
func (c *Client) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := c.catchUp(ctx, object); err != nil {
		return err
	}
	return c.cache.Get(ctx, key, object, options...)
}

// List implements client.Reader.
func (c *Client) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := c.catchUp(ctx, list); err != nil {
		return err
	}
	return c.cache.List(ctx, list, options...)
}

func (c *Client) catchUp(ctx context.Context, object any) error {
	if !c.consistent {
		return nil
	}
	return c.cache.catchUp(ctx, object)
}

// Patch implements client.Writer.
func (c *Client) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return c.patch(ctx, object, patch, func(sent client.Object, patch client.Patch) error {
		return c.line.server.Patch(ctx, sent, patch, options...)
	})
}

// Status implements client.StatusClient.
func (c *Client) Status() client.SubResourceWriter { return statusClient{Client: c} }

type statusClient struct {
	client.SubResourceWriter
	*Client
}

// Patch implements client.SubResourceWriter.
func (c statusClient) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return c.patch(ctx, object, patch, func(sent client.Object, patch client.Patch) error {
		return c.line.server.Status().Patch(ctx, sent, patch, options...)
	})
}

// Update implements client.SubResourceWriter.
func (c statusClient) Update(ctx context.Context, object client.Object, options ...client.SubResourceUpdateOption) error {
	return c.write(ctx, object, func(sent client.Object) error { return c.line.server.Status().Update(ctx, sent, options...) })
}

func (c *Client) patch(ctx context.Context, object client.Object, patch client.Patch, send func(client.Object, client.Patch) error) error {
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	return c.write(ctx, object, func(sent client.Object) error { return send(sent, client.RawPatch(patch.Type(), data)) })
}

// write sends a copy of the object, because the write may happen late, and copies the answer into
// the object.
func (c *Client) write(ctx context.Context, object client.Object, send func(client.Object) error) error {
	sent, _ := object.DeepCopyObject().(client.Object)
	if err := c.line.request(ctx, "write "+object.GetName(), true, func() error { return send(sent) }); err != nil {
		return err
	}
	if c.consistent {
		c.cache.wrote(sent)
	}
	apiserver.Into(object, sent)
	return nil
}

// Live reads from the API server.
type Live struct {
	client.Reader

	line line
}

// NewLive returns a reader for one goroutine.
func NewLive(p *Process, party string) *Live { return &Live{line: lineOf(p, party)} }

// Get implements client.Reader.
func (l *Live) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return l.line.request(ctx, "get "+key.Name, false, func() error { return l.line.server.Get(ctx, key, object, options...) })
}

// List implements client.Reader.
func (l *Live) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return l.line.request(ctx, "list", false, func() error { return l.line.server.List(ctx, list, options...) })
}

// line sends the requests of one party of a process, one at a time, with its own random source.
type line struct {
	*Process
	random *Random
	server client.Client
}

func lineOf(p *Process, name string) line {
	return line{p, p.random(name), apiserver.NewClient(p.store)}
}

// request sends a request. It may have no effect, takes some time, and may be the last request of
// the process.
func (l line) request(ctx context.Context, name string, writes bool, effect func() error) error {
	w := l.conditions()
	l.counts.Add("requests")
	forth, back := l.random.Between(0, w.Latency), l.random.Between(0, w.Latency)
	crash, when := l.random.Chance(w.Crash), l.random.Below(2)
	if crash && when == 0 {
		l.crash()
	}
	if err := l.travel(ctx, forth); err != nil {
		return err
	}
	err := l.deliver(w, name, writes, effect)
	if crash {
		l.crash()
	}
	if lost := l.travel(ctx, back); lost != nil {
		return lost
	}
	return err
}

// travel waits while a request or an answer is under way. If the process is paused during that
// time, it continues later, and does not send a request that has timed out by then.
func (l line) travel(ctx context.Context, d time.Duration) error {
	Wait(ctx, d)
	if !l.Pass() {
		return ErrDead
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the request was given up: %w", context.Cause(ctx))
	}
	return nil
}

func (l line) crash() {
	l.counts.Add("crashes between requests")
	l.Kill()
}

// deliver lets the server handle the request.
func (l line) deliver(w Conditions, request string, writes bool, effect func() error) error {
	switch {
	case w.Down:
		l.counts.Add("requests while the API server was down")
		return fmt.Errorf("%s: connection refused", request)
	case l.random.Chance(w.Refused):
		return l.refuse(request, writes)
	case writes && l.random.Chance(w.Outrun):
		l.counts.Add("heartbeats between a read and its write")
		return conflict(request)
	case writes && l.random.Chance(w.Late):
		l.counts.Add("writes that came late")
		l.late(effect)
		return apierrors.NewTimeoutError(request, 0)
	}
	err := effect()
	if err == nil && l.random.Chance(w.Lost) {
		l.counts.Add("answers lost")
		return apierrors.NewTimeoutError(request, 0)
	}
	return err
}

// refuse returns an error for which the client is not to blame.
func (l line) refuse(request string, writes bool) error {
	kinds := 2
	if writes {
		kinds = 3
	}
	switch l.random.Below(kinds) {
	case 0:
		l.counts.Add("429")
		return apierrors.NewTooManyRequests("too many requests", 1)
	case 1:
		l.counts.Add("500")
		return apierrors.NewInternalError(fmt.Errorf("%s: etcdserver: leader changed", request))
	}
	l.counts.Add("409 without a reason")
	return conflict(request)
}

func conflict(request string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, request, errors.New("the object has been modified"))
}

// late lets a write take effect up to 30 seconds after its sender gave up. It is already on its
// way, so it outlives its process.
func (l line) late(effect func() error) {
	time.AfterFunc(l.random.Between(time.Second, 30*time.Second), func() { _ = effect() }) // nobody receives the answer
}
