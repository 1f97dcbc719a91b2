package process

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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
	return c.cache.catchUp(ctx, apiserver.KindOf(object))
}

// Patch implements client.Writer.
func (c *Client) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return c.patch(ctx, object, patch, false, owner(options))
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
	name := object.GetName()
	switch {
	case apiserver.KindOf(object) == apiserver.Nodes && patch.Type() == types.StrategicMergePatchType:
		return c.write(ctx, object, func() (client.Object, error) { return c.line.store.PatchNode(name, status, data, by) })
	case apiserver.KindOf(object) == apiserver.Policies && patch.Type() == types.MergePatchType && !status:
		return c.write(ctx, object, func() (client.Object, error) { return c.line.store.PatchPolicy(name, data, by) })
	}
	return fmt.Errorf("nobody patches a %T by %s", object, patch.Type())
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

func owner(options []client.PatchOption) string {
	var all client.PatchOptions
	all.ApplyOptions(options)
	return all.FieldManager
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
	kind := apiserver.KindOf(object)
	if kind == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("there are no %T here", object))
	}
	return l.line.request(ctx, "get "+key.Name, false, func() error {
		stored, err := l.line.store.Get(apiserver.Key{Kind: kind, Name: key.Name})
		if err != nil {
			return err
		}
		return into(object, stored)
	})
}

// List implements client.Reader: all at once, whatever the limit.
func (l *Live) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return l.line.request(ctx, "list", false, func() error {
		objects, _ := l.line.store.List(apiserver.KindOf(list))
		return fill(list, objects)
	})
}

// into puts a copy of one object into another.
func into(object, from client.Object) error {
	switch to := object.(type) {
	case *corev1.Node:
		if node, ok := from.(*corev1.Node); ok {
			node.DeepCopyInto(to)
			return nil
		}
	case *v1alpha1.RebootPolicy:
		if policy, ok := from.(*v1alpha1.RebootPolicy); ok {
			policy.DeepCopyInto(to)
			return nil
		}
	}
	return fmt.Errorf("a %T is no %T", from, object)
}

// fill puts copies of objects into a list.
func fill(list client.ObjectList, objects []client.Object) error {
	switch to := list.(type) {
	case *corev1.NodeList:
		to.Items = make([]corev1.Node, len(objects))
		for i := range objects {
			if err := into(&to.Items[i], objects[i]); err != nil {
				return err
			}
		}
		return nil
	case *v1alpha1.RebootPolicyList:
		to.Items = make([]v1alpha1.RebootPolicy, len(objects))
		for i := range objects {
			if err := into(&to.Items[i], objects[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("nobody lists a %T", list)
}
