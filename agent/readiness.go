package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

// An agent that loses its permissions, the API server or the bus is not Ready within a minute.
// Permissions are checked when a watch begins, so a watch lasts renewAfter and up to a third more.
// At rest, this renewal is the only request. HTTP/2 detects a silently broken connection after 45
// seconds. A watch or a connection that is back within patience counts as if it had lasted. The
// rest of the minute is for the kubelet's probes.
const (
	renewAfter = 30 * time.Second
	patience   = 10 * time.Second
)

// readiness reports whether the agent can do its work: it has read its Node, still watches it, and
// is connected to the host's bus.
type readiness struct {
	listed    lifecycle.Listed
	node, bus *link
	// renewAfter is the shortest duration of a watch of the Node.
	renewAfter time.Duration
}

func newReadiness(now clock.PassiveClock, renewAfter time.Duration) readiness {
	return readiness{
		listed: make(lifecycle.Listed), renewAfter: renewAfter,
		node: &link{clock: now, to: "the API server: the watch of this agent's Node"},
		bus:  &link{clock: now, to: "the host's system bus"},
	}
}

// add registers the probes. If new agents may not read their Nodes, their rollout stops at the
// maxUnavailable of the DaemonSet.
func (r readiness) add(mgr manager.Manager) error {
	return errors.Join(mgr.AddReadyzCheck("node-listed", r.listed.Checker(errNotListed)), mgr.AddReadyzCheck("node-watched", r.node.check),
		mgr.AddReadyzCheck("bus", r.bus.check), mgr.Add(r.listed))
}

// errNotListed is the reason of an agent that is not ready. Only its log has the API server's
// response.
var errNotListed = errors.New("the API server has not listed this agent's Node yet; see the agent's log")

// link is a connection that should always be open.
type link struct {
	clock clock.PassiveClock
	// to names the other end of the connection.
	to string

	mu   sync.Mutex
	open int
	// lost is the time when the last connection was closed, or zero before the first one.
	lost time.Time
}

// opened counts a connection until closed is called. Further calls of closed do nothing.
func (l *link) opened() (closed func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open--
		l.lost = l.clock.Now()
	})
}

// check implements healthz.Checker.
func (l *link) check(*http.Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open > 0 || !l.lost.IsZero() && l.clock.Since(l.lost) < patience {
		return nil
	}
	return fmt.Errorf("no connection to %s; see the agent's log", l.to)
}

// connect returns a Connect that counts the connections which it opens.
func (l *link) connect(open host.Connect) host.Connect {
	return func(ctx context.Context) (*dbus.Conn, error) {
		conn, err := open(ctx)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(conn.Context(), l.opened())
		return conn, nil
	}
}

// newInformer returns an informer whose watch is renewed often and counted. A reflector begins the
// next watch, or a list, right after a watch has ended.
func (r readiness) newInformer(lw toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	server, ended := toolscache.ToListerWatcherWithContext(lw), func() {}
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			ended()
			return server.ListWithContext(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			ended()
			options.TimeoutSeconds = new(int64((r.renewAfter + rand.N(r.renewAfter/3)).Seconds()))
			watching, err := server.WatchWithContext(ctx, options)
			if err == nil {
				ended = r.node.opened()
			}
			return watching, err
		},
	}, object, resync, indexers)
}
