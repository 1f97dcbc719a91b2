package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/reboot-operator/reboot-operator/controllers/fleetlock"
)

// held wakes the requests that are held for a Node when the Node changes. It is lost with the
// process, and the clients then retry.
type held struct {
	mu    sync.Mutex
	nodes map[string]map[chan struct{}]bool
}

// follow wakes requests on the events of the cache.
func (h *held) follow(ctx context.Context, nodes cache.Cache) error {
	informer, err := nodes.GetInformer(ctx, &corev1.Node{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching Nodes: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, node any) { h.wake(node) },
		DeleteFunc: h.wake,
	})
	if err != nil {
		return fmt.Errorf("watching Nodes: %w", err)
	}
	return nil
}

// begin returns a channel that receives each change of a Node, and a function that ends that. It
// returns false if too many requests are held.
func (h *held) begin(node string) (changed <-chan struct{}, release func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.nodes[node]) >= maxHeldPerNode {
		return nil, nil, false
	}
	if h.nodes == nil {
		h.nodes = map[string]map[chan struct{}]bool{}
	}
	if h.nodes[node] == nil {
		h.nodes[node] = map[chan struct{}]bool{}
	}
	wake := make(chan struct{}, 1)
	h.nodes[node][wake] = true
	return wake, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.nodes[node], wake)
		if len(h.nodes[node]) == 0 {
			delete(h.nodes, node)
		}
	}, true
}

func (h *held) wake(object any) {
	if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	node, ok := object.(*corev1.Node)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for wake := range h.nodes[node.Name] {
		select {
		case wake <- struct{}{}:
		default: // A pending change is enough.
		}
	}
}

// limitedListener accepts a limited number of connections. It sends every further client a refusal and
// hangs up.
type limitedListener struct {
	net.Listener

	slots chan struct{}
}

// limit limits the number of connections of a listener.
func limit(listener net.Listener, connections int) net.Listener {
	return limitedListener{listener, make(chan struct{}, connections)}
}

// refusalLimit is the longest time that a refused client may delay others.
const refusalLimit = 100 * time.Millisecond

// Accept implements net.Listener.
func (l limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &counted{Conn: conn, release: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			refuse(conn)
		}
	}
}

// refuse sends a refusal in plain HTTP before anything is read. For a client that uses TLS, the
// connection is just closed.
func refuse(conn net.Conn) {
	body, err := json.Marshal(fleetlock.Busy("The server has reached its limit of connections. Ask again later.").Error())
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(refusalLimit)) //nolint:forbidigo // a deadline of the kernel's
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			http.StatusTooManyRequests, http.StatusText(http.StatusTooManyRequests), len(body), body)
	}
	_ = conn.Close()
}

// counted releases its slot when it is closed.
type counted struct {
	net.Conn

	release func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.release()
	return c.Conn.Close()
}
