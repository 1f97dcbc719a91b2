package scale

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// watchLife is longer than any measurement: a watch that ends in the middle of one would be counted twice. Real ones end
// after 5 to 10 minutes.
const watchLife = 2 * time.Hour

// crowd is one client for each node, each with a connection of its own, as programs on nodes have. Each watches its Node, as an
// informer of client-go does that selects one by metadata.name: a kubelet's, and an agent's.
type crowd struct {
	clients []*corev1client.CoreV1Client
	// events is how many changes all of them have been notified of.
	events atomic.Int64
	fail   context.CancelCauseFunc
}

func newCrowd(l *lab, user string, fail context.CancelCauseFunc) (*crowd, error) {
	kubeconfig, err := l.cluster.UserKubeconfig(user, "system:masters")
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
	}
	config = protobuf(config)
	config.QPS = -1
	c := &crowd{fail: fail}
	for range l.nodes {
		client, err := alone(config)
		if err != nil {
			return nil, err
		}
		c.clients = append(c.clients, client)
	}
	return c, nil
}

// alone is a client that shares its connection with no other.
func alone(config *rest.Config) (*corev1client.CoreV1Client, error) {
	security, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates: %w", err)
	}
	client, err := corev1client.NewForConfigAndClient(config, &http.Client{Transport: &http.Transport{
		TLSClientConfig: security, ForceAttemptHTTP2: true,
	}})
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	return client, nil
}

// open opens all watches, which end with ctx, and returns when each has reported of its node.
func (c *crowd) open(ctx context.Context) error {
	var group errgroup.Group
	group.SetLimit(2 * writers)
	for i, client := range c.clients {
		group.Go(func() error { return c.watch(ctx, client, nodeName(i)) })
	}
	return group.Wait()
}

// watch begins one watch, waits for its node, and leaves the rest to a goroutine.
func (c *crowd) watch(ctx context.Context, client *corev1client.CoreV1Client, name string) error {
	life, initial := int64(watchLife/time.Second), true
	changes, err := client.Nodes().Watch(ctx, metav1.ListOptions{
		FieldSelector:       fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
		AllowWatchBookmarks: true, SendInitialEvents: &initial, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		TimeoutSeconds: &life,
	})
	if err != nil {
		return fmt.Errorf("watching node %q: %w", name, err)
	}
	for change := range changes.ResultChan() {
		if node, isNode := change.Object.(*corev1.Node); isNode && node.Name == name {
			go c.follow(ctx, changes)
			return nil
		}
	}
	return fmt.Errorf("the watch of node %q has ended: %w", name, context.Cause(ctx))
}

func (c *crowd) follow(ctx context.Context, changes watch.Interface) {
	defer changes.Stop()
	for change := range changes.ResultChan() {
		switch change.Type {
		case watch.Bookmark:
		case watch.Error: // and the end: see below
		default:
			c.events.Add(1)
		}
	}
	if ctx.Err() == nil {
		c.fail(errors.New("a watch has ended by itself"))
	}
}
