package process

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
)

// Client reads from a cache and writes to the API server. What the operator does not call is not there, and panics.
type Client struct {
	client.Client

	line  line
	cache *Cache
	// consistent lets reads wait until the cache shows this client's writes.
	consistent bool
}

// NewClient makes the client of one goroutine. Consistent: it reads its own writes.
func NewClient(p *Process, party string, cache *Cache, consistent bool) *Client {
	return &Client{line: lineOf(p, party), cache: cache, consistent: consistent}
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
	var all client.PatchOptions
	all.ApplyOptions(options)
	return c.patch(ctx, object, patch, false, all.FieldManager)
}

// Status implements client.StatusClient.
func (c *Client) Status() client.SubResourceWriter { return statusClient{Client: c} }

type statusClient struct {
	client.SubResourceWriter
	*Client
}

// Patch implements client.SubResourceWriter.
func (c statusClient) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	var all client.SubResourcePatchOptions
	all.ApplyOptions(options)
	return c.patch(ctx, object, patch, true, all.FieldManager)
}

// Update implements client.SubResourceWriter.
func (c statusClient) Update(ctx context.Context, object client.Object, options ...client.SubResourceUpdateOption) error {
	var all client.SubResourceUpdateOptions
	all.ApplyOptions(options)
	policy, ok := object.(*v1alpha1.RebootPolicy)
	if !ok {
		return fmt.Errorf("nobody updates the status of a %T", object)
	}
	put := policy.DeepCopy()
	return c.write(ctx, object, func() (client.Object, error) { return c.line.store.PutPolicyStatus(put, all.FieldManager) })
}

func (c *Client) patch(ctx context.Context, object client.Object, patch client.Patch, status bool, by string) error {
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	of := apiserver.Key{Kind: apiserver.KindOf(object), Name: object.GetName()}
	return c.write(ctx, object, func() (client.Object, error) { return c.line.store.Patch(of, patch.Type(), status, data, by) })
}

// write sends what changes an object, and puts what came back into it.
func (c *Client) write(ctx context.Context, object client.Object, effect func() (client.Object, error)) error {
	var written client.Object
	err := c.line.request(ctx, "write "+object.GetName(), true, func() (err error) {
		written, err = effect()
		return err
	})
	if err != nil {
		return err
	}
	if c.consistent {
		c.cache.wrote(written)
	}
	return into(object, written)
}

// Live reads from the API server.
type Live struct {
	client.Reader

	line line
}

// NewLive makes the reader of one goroutine.
func NewLive(p *Process, party string) *Live { return &Live{line: lineOf(p, party)} }

// Get implements client.Reader.
func (l *Live) Get(ctx context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	of := apiserver.Key{Kind: apiserver.KindOf(object), Name: key.Name}
	return l.line.request(ctx, "get "+key.Name, false, func() error {
		stored, err := l.line.store.Get(of)
		if err != nil {
			return err
		}
		return into(object, stored)
	})
}

// List implements client.Reader: all at once, whatever the limit.
func (l *Live) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	kind := apiserver.KindOf(list)
	return l.line.request(ctx, "list", false, func() error {
		return fill(list, l.line.store.List(kind), false)
	})
}

// into puts a copy of one object into another of its type.
func into(object, from client.Object) error {
	to, is := reflect.ValueOf(object).Elem(), reflect.ValueOf(from.DeepCopyObject()).Elem()
	if to.Type() != is.Type() {
		return fmt.Errorf("a %T is no %T", from, object)
	}
	to.Set(is)
	return nil
}

// fill puts objects into a list: copies, unless their contents are shared.
func fill(list client.ObjectList, objects []client.Object, shared bool) error {
	items := make([]runtime.Object, len(objects))
	for i, object := range objects {
		if items[i] = object; !shared {
			items[i] = object.DeepCopyObject()
		}
	}
	return meta.SetList(list, items)
}
