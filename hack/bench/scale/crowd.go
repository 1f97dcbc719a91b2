package scale

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
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

func newCrowd(l *lab, fail context.CancelCauseFunc) (*crowd, error) {
	config := l.cluster.Config()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	security, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates: %w", err)
	}
	c := &crowd{fail: fail}
	for range l.nodes {
		connection := &http.Transport{TLSClientConfig: security.Clone(), ForceAttemptHTTP2: true}
		client, err := corev1client.NewForConfigAndClient(config, &http.Client{Transport: connection})
		if err != nil {
			return nil, fmt.Errorf("building a client: %w", err)
		}
		c.clients = append(c.clients, client)
	}
	return c, nil
}

// open opens all watches, which end with ctx, and returns when each has reported of its node.
func (c *crowd) open(ctx context.Context) error {
	life, initial := int64(watchLife/time.Second), true
	var group errgroup.Group
	group.SetLimit(2 * writers)
	for i, client := range c.clients {
		group.Go(func() error {
			changes, err := client.Nodes().Watch(ctx, metav1.ListOptions{
				FieldSelector:       fields.OneTermEqualSelector(metav1.ObjectNameField, nodeName(i)).String(),
				AllowWatchBookmarks: true, SendInitialEvents: &initial, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
				TimeoutSeconds: &life,
			})
			if err != nil {
				return fmt.Errorf("watching node %q: %w", nodeName(i), err)
			}
			if first := <-changes.ResultChan(); first.Type != watch.Added {
				return fmt.Errorf("the watch of node %q begins with %v", nodeName(i), first)
			}
			go c.follow(ctx, changes)
			return nil
		})
	}
	return group.Wait()
}

func (c *crowd) follow(ctx context.Context, changes watch.Interface) {
	defer changes.Stop()
	for change := range changes.ResultChan() {
		if change.Type != watch.Bookmark {
			c.events.Add(1)
		}
	}
	if ctx.Err() == nil {
		c.fail(errors.New("a watch has ended by itself"))
	}
}
