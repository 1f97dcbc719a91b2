package apiserver

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Client sends requests to a store. Methods that the operator does not call are missing and panic.
type Client struct {
	client.WithWatch

	store *Store
}

// NewClient returns a client of a store.
func NewClient(store *Store) *Client { return &Client{store: store} }

// Get implements client.Reader.
func (c *Client) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	stored, err := c.store.Get(Key{KindOf(object), key.Name})
	return into(object, stored, err)
}

// List implements client.Reader. It returns all objects of a kind, whatever the options.
func (c *Client) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return Fill(list, c.store.List(KindOf(list)), false)
}

// Create implements client.Writer.
func (c *Client) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	return c.store.Create(object, new(client.CreateOptions).ApplyOptions(options).FieldManager)
}

// Delete implements client.Writer.
func (c *Client) Delete(_ context.Context, object client.Object, _ ...client.DeleteOption) error {
	return c.store.Delete(keyOf(object), "")
}

// Patch implements client.Writer, with a strategic merge patch for Nodes and a JSON merge patch for
// policies. A resourceVersion in the patch makes it a compare-and-swap.
func (c *Client) Patch(_ context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return c.patch(object, patch, false, new(client.PatchOptions).ApplyOptions(options).FieldManager)
}

// Status implements client.StatusClient.
func (c *Client) Status() client.SubResourceWriter { return statusClient{client: c} }

type statusClient struct {
	client.SubResourceWriter

	client *Client
}

// Patch implements client.SubResourceWriter for the status and the metadata of a Node.
func (c statusClient) Patch(_ context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return c.client.patch(object, patch, true, new(client.SubResourcePatchOptions).ApplyOptions(options).FieldManager)
}

// Update implements client.SubResourceWriter. It replaces only the status of a policy, as a
// compare-and-swap if the object has a resourceVersion.
func (c statusClient) Update(_ context.Context, object client.Object, options ...client.SubResourceUpdateOption) error {
	put, _ := object.(*v1alpha1.RebootPolicy)
	by := new(client.SubResourceUpdateOptions).ApplyOptions(options).FieldManager
	stored, err := c.client.store.write(keyOf(put), by, func(object client.Object) error {
		after, _ := object.(*v1alpha1.RebootPolicy)
		after.ResourceVersion, after.Status = put.ResourceVersion, v1alpha1.RebootPolicyStatus{}
		return through(put.Status, &after.Status)
	})
	return into(object, stored, err)
}

func (c *Client) patch(object client.Object, patch client.Patch, status bool, by string) error {
	data, err := patch.Data(object)
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	stored, err := c.store.write(keyOf(object), by, func(object client.Object) error {
		if err := merge(object, patch.Type(), status, data); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		return nil
	})
	return into(object, stored, err)
}

func keyOf(object client.Object) Key { return Key{KindOf(object), object.GetName()} }

// into copies an answer into the object that was sent.
func into(object, answer client.Object, err error) error {
	if err == nil {
		Into(object, answer)
	}
	return err
}

// Into makes a shallow copy of another object of the same type.
func Into(object, from client.Object) {
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(from).Elem())
}

// Fill puts objects into a list. It copies them unless their contents are shared.
func Fill(list client.ObjectList, objects []client.Object, shared bool) error {
	items := make([]runtime.Object, len(objects))
	for i, object := range objects {
		if items[i] = object; !shared {
			items[i] = object.DeepCopyObject()
		}
	}
	return meta.SetList(list, items)
}
