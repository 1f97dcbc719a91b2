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

// held wakes the requests that are held for a Node when the Node changes. It is lost with the process: the
// clients come again.
type held struct {
	mu    sync.Mutex
	nodes map[string]map[chan struct{}]bool
}

// follow wakes by the events of the cache.
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

// begin returns what receives each change of a Node, and what ends that. False: too many are held.
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
		default: // One that is not received yet counts for this one.
		}
	}
}

// limited accepts a number of connections at once. It tells every further client so, and hangs up.
type limited struct {
	net.Listener

	slots chan struct{}
}

// limit lets a listener have at most so many connections.
func limit(listener net.Listener, connections int) net.Listener {
	return limited{listener, make(chan struct{}, connections)}
}

// refusalLimit bounds how long a client that is refused may keep the others waiting.
const refusalLimit = 100 * time.Millisecond

// Accept implements net.Listener.
func (l limited) Accept() (net.Conn, error) {
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

// refuse answers in plain HTTP, before anything is read. A client that speaks TLS sees that the connection
// is closed.
func refuse(conn net.Conn) {
	body, err := json.Marshal(fleetlock.Busy("The server has as many connections as it may.").Error())
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(refusalLimit)) //nolint:forbidigo // a deadline of the kernel's
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			http.StatusTooManyRequests, http.StatusText(http.StatusTooManyRequests), len(body), body)
	}
	_ = conn.Close()
}

// counted gives its slot back once it is closed.
type counted struct {
	net.Conn

	release func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.release()
	return c.Conn.Close()
}
