package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/reboot-operator/reboot-operator/controllers/fleetlock"
	fleetlockserver "github.com/reboot-operator/reboot-operator/controllers/fleetlock/server"
)

// serveFleetLock makes a manager serve FleetLock on a new port, because the port of the process before
// may still be taken.
func (s *scenario) serveFleetLock(ctx context.Context, mgr manager.Manager) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.server = listener.Addr().String()
	s.mu.Unlock()
	if err := fleetlockserver.Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return mgr.Add(&fleetlockserver.Server{
		Listener: listener, Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Requests: mgr.GetClient(), Clock: clock.RealClock{},
		Recorder: mgr.GetEventRecorder("manager"), Hold: time.Minute, Namespace: crashNamespace,
	})
}

// runClient asks for one reboot until it may, reboots the host, and reports the steady state until that is accepted.
func (h *crashedHost) runClient(ctx context.Context) {
	if !h.ask(ctx, "pre-reboot") {
		return
	}
	var node corev1.Node
	if err := h.s.api.Get(ctx, client.ObjectKey{Name: h.Name}, &node); err != nil || !fleetlock.Passed(&node) {
		h.s.t.Errorf("%s may reboot, but the Node shows %v (%v)", h.Name, node.Annotations, err)
	}
	h.reboot(ctx)
	h.steady.Store(h.ask(ctx, "steady-state"))
}

// ask asks until the answer is yes, or the scenario ends.
func (h *crashedHost) ask(ctx context.Context, call string) bool {
	for ctx.Err() == nil {
		h.s.mu.Lock()
		server := h.s.server
		h.s.mu.Unlock()
		body := strings.NewReader(fmt.Sprintf(`{"client_params":{"id":%q,"group":"default"}}`, h.Name))
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+server+"/v1/"+call, body)
		must(h.s.t, err)
		request.Header.Set("fleet-lock-protocol", "true")
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return true
			}
		}
		select { // A manager that was killed is soon there again.
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return false
}
