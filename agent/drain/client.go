package drain

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const (
	// listSeconds is the time-out of a LIST.
	listSeconds = 30
	// watchSeconds is the duration of a WATCH, so that a broken one is noticed.
	watchSeconds = 300
)

// Client makes the API requests of a drain as one identity, for three kinds of objects.
type Client struct {
	core, policy rest.Interface
}

// NewClient returns a client with the identity in config.
func NewClient(config *rest.Config) (*Client, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of a drain: %w", err)
	}
	return &Client{core: clients.CoreV1().RESTClient(), policy: clients.PolicyV1().RESTClient()}, nil
}

// pods calls take for each pod that matches a field selector, and returns the resource version of
// the list. The request does not set a resource version. The API server then answers from its
// cache, by an index on the node's name, with data as fresh as that of etcd.
func (c *Client) pods(ctx context.Context, selector string, take func(*corev1.Pod) error) (version string, err error) {
	return list(ctx, c.query(c.core.Get().Resource("pods"), selector), take)
}

// budgets calls take for each PodDisruptionBudget of a namespace. They are as fresh as the pods.
func (c *Client) budgets(ctx context.Context, namespace string, take func(*policyv1.PodDisruptionBudget) error) error {
	_, err := list(ctx, c.query(c.policy.Get().Namespace(namespace).Resource("poddisruptionbudgets"), ""), take)
	return err
}

// watchPods watches the pods that match a field selector, from a resource version on.
func (c *Client) watchPods(ctx context.Context, selector, version string) (watch.Interface, error) {
	return c.watch(ctx, c.core.Get().Resource("pods"), &metav1.ListOptions{
		FieldSelector: selector, ResourceVersion: version, AllowWatchBookmarks: true,
	})
}

// watchBudgets watches the PodDisruptionBudgets of a namespace. It begins with all existing ones.
func (c *Client) watchBudgets(ctx context.Context, namespace string) (watch.Interface, error) {
	return c.watch(ctx, c.policy.Get().Namespace(namespace).Resource("poddisruptionbudgets"), &metav1.ListOptions{})
}

func (c *Client) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{}
	return namespace, c.core.Get().Resource("namespaces").Name(name).Timeout(requestTimeout).Do(ctx).Into(namespace)
}

func (c *Client) query(request *rest.Request, selector string) *rest.Request {
	seconds := int64(listSeconds)
	options := &metav1.ListOptions{FieldSelector: selector, TimeoutSeconds: &seconds}
	return request.VersionedParams(options, scheme.ParameterCodec)
}

// list decodes the response to a LIST one object at a time, because a tenant's objects together may
// exceed the agent's memory. Pages would be read from etcd, which would read the pods of all nodes.
func list[T any](ctx context.Context, request *rest.Request, take func(*T) error) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, listSeconds*time.Second)
	defer cancel()
	body, err := request.SetHeader("Accept", runtime.ContentTypeJSON).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	return readList(body, take)
}

// readList calls take for each item of a list in JSON, and returns the list's resource version.
func readList[T any](from io.Reader, take func(*T) error) (version string, err error) {
	decoder := json.NewDecoder(from)
	var metadata metav1.ListMeta
	err = readAll(decoder, func() error {
		switch key, err := decoder.Token(); {
		case err != nil:
			return err
		case key == "metadata":
			return decoder.Decode(&metadata)
		case key == "items":
			return readAll(decoder, func() error {
				item := new(T)
				if err := decoder.Decode(item); err != nil {
					return err
				}
				return take(item)
			})
		default:
			return decoder.Decode(&json.RawMessage{})
		}
	})
	return metadata.ResourceVersion, err
}

// readAll reads all members of an object or an array. It accepts null as empty.
func readAll(decoder *json.Decoder, read func() error) error {
	switch begin, err := decoder.Token(); {
	case err != nil || begin == nil:
		return err
	case begin != json.Delim('{') && begin != json.Delim('['):
		return fmt.Errorf("%v instead of an object or an array", begin)
	}
	for decoder.More() {
		if err := read(); err != nil {
			return err
		}
	}
	_, err := decoder.Token()
	return err
}

// watch disables client-go's retries, which may sleep up to ten times on a Retry-After while the
// drain misses changes of pods. The drain itself tries again.
func (c *Client) watch(ctx context.Context, request *rest.Request, options *metav1.ListOptions) (watch.Interface, error) {
	seconds := int64(watchSeconds)
	options.Watch, options.TimeoutSeconds = true, &seconds
	return request.VersionedParams(options, scheme.ParameterCodec).Timeout(watchSeconds * time.Second).MaxRetries(0).Watch(ctx)
}
