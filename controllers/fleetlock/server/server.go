// Package server serves the FleetLock protocol to the hosts of the cluster. It has neither
// decisions nor state: controllers/fleetlock computes every answer from the Node and the ledger.
//
// The protocol has no authentication, so everything that a client sends is limited before it is
// read, and a client gets a yes only if its node may reboot anyway.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/fleetlock"
)

const (
	// DefaultHold is the default time that a request is held. Zincati waits 30 minutes for an
	// answer.
	DefaultHold = 25 * time.Minute
	// MaxConnections limits the clients that are connected at the same time.
	MaxConnections = 2048
	// maxHeldPerNode limits the held requests of one Node: a client that comes again may have left
	// a connection behind.
	maxHeldPerNode = 4
	// headerLimit and requestLimit bound how long a client may take to send a request. requestLimit
	// also ends idle connections.
	headerLimit, requestLimit = 5 * time.Second, 10 * time.Second
	// answerLimit bounds how long a client may take to receive its answer.
	answerLimit = 10 * time.Second
	// maxHeaderBytes is more than the headers of any client take.
	maxHeaderBytes = 8 << 10
	// readLimit bounds the reads of the API server for a yes.
	readLimit = 10 * time.Second
)

// machineIndex and firmwareIndex find Nodes by what fleetlock.MachineIDs and FirmwareIDs return.
const machineIndex, firmwareIndex = "fleetlock.machine", "fleetlock.firmware"

// Server answers FleetLock clients. It implements manager.Runnable, on every replica. All fields
// but TLS and Requests are required.
type Server struct {
	// Listener accepts the clients.
	Listener net.Listener
	// TLS makes the server use HTTPS. If it is nil, the server uses plain HTTP.
	TLS *tls.Config
	// Cache has the Nodes, with their machine IDs and addresses.
	Cache cache.Cache
	// Live reads a Node and a ledger past the cache before a yes, because the cache may be from the
	// previous boot.
	Live client.Reader
	// Recorder emits events about clients that are refused.
	Recorder events.EventRecorder
	// Clock measures how long requests are held.
	Clock clock.WithTicker
	// Hold is the longest time before a held request is answered with no.
	Hold time.Duration
	// Namespace is the operator's. Events about unknown clients regard it.
	Namespace string
	// Requests records on a Node that its client asks for a reboot. If it is nil, a request alone is
	// not a need.
	Requests client.Writer
	// CheckSource refuses requests that do not come from an address of their Node.
	CheckSource bool

	// Tests set connections to replace MaxConnections, and slow to replace headerLimit and
	// requestLimit.
	connections int
	slow        time.Duration

	held      held
	requests  requests
	announcer announcer
}

// NeedLeaderElection reports that standbys serve, too.
func (*Server) NeedLeaderElection() bool { return false }

// Index makes the cache find Nodes by the IDs of their clients. It is called before the cache is
// started.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	of := func(ids func(*corev1.Node) []string) client.IndexerFunc {
		return func(object client.Object) []string {
			node, ok := object.(*corev1.Node)
			if !ok {
				return nil
			}
			return ids(node)
		}
	}
	err := errors.Join(
		indexer.IndexField(ctx, &corev1.Node{}, machineIndex, of(fleetlock.MachineIDs)),
		indexer.IndexField(ctx, &corev1.Node{}, firmwareIndex, of(fleetlock.FirmwareIDs)),
	)
	if err != nil {
		return fmt.Errorf("indexing Nodes by the IDs of FleetLock clients: %w", err)
	}
	return nil
}

// Start serves until ctx ends. Requests that are held then get the answer that they would get at
// the end of the hold.
func (s *Server) Start(ctx context.Context) error {
	s.announcer = announcer{recorder: s.Recorder, namespace: s.Namespace, clock: s.Clock, last: map[v1alpha1.Reason]time.Time{}}
	if err := s.held.follow(ctx, s.Cache); err != nil {
		return err
	}
	if !s.Cache.WaitForCacheSync(ctx) {
		return nil // The manager ends.
	}
	mux := http.NewServeMux()
	mux.Handle("POST /v1/pre-reboot", s.handle(ctx, s.preReboot))
	mux.Handle("POST /v1/steady-state", s.handle(ctx, s.steadyState))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusNotFound, fleetlock.Invalid("it is not a POST of v1/pre-reboot or v1/steady-state"))
	})
	server := &http.Server{
		Handler:           mux,
		TLSConfig:         s.TLS,
		ReadHeaderTimeout: cmp.Or(s.slow, headerLimit),
		ReadTimeout:       cmp.Or(s.slow, requestLimit),
		WriteTimeout:      s.Hold + readLimit + answerLimit,
		MaxHeaderBytes:    maxHeaderBytes,
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){}, // One request per connection at a time.
		BaseContext: func(net.Listener) context.Context {
			return ctrl.LoggerInto(context.WithoutCancel(ctx), ctrl.LoggerFrom(ctx))
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- s.serve(server) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving FleetLock: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}

// stopLimit is the time that the answers to held requests may take when the manager stops.
const stopLimit = 2 * time.Second

func (s *Server) serve(server *http.Server) error {
	listener := limit(s.Listener, cmp.Or(s.connections, MaxConnections))
	if s.TLS != nil {
		return server.ServeTLS(listener, "", "")
	}
	return server.Serve(listener)
}

// answer returns the current response to a Node's client, which has that ID.
type answer func(ctx context.Context, node *corev1.Node, id string) fleetlock.Answer

// handle reads a request and holds it until the answer is yes, cannot become yes, or the hold ends.
func (s *Server) handle(stop context.Context, decide answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := read(w, r)
		if err != nil {
			write(w, http.StatusBadRequest, fleetlock.Invalid(err.Error()))
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(stop, cancel)()
		a := s.hold(ctx, fleetlock.Normalize(request.ID), address(r), decide)
		if r.Context().Err() != nil {
			return // The client has gone and will retry.
		}
		write(w, statusOf(a), a)
	})
}

// read reads a request, within bounds.
func read(w http.ResponseWriter, r *http.Request) (fleetlock.Request, error) {
	if r.Header.Get("fleet-lock-protocol") != "true" {
		return fleetlock.Request{}, errors.New("it needs the header fleet-lock-protocol: true")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, fleetlock.MaxBodyBytes))
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		return fleetlock.Request{}, fmt.Errorf("the body has more than %d bytes", fleetlock.MaxBodyBytes)
	}
	if err != nil {
		return fleetlock.Request{}, errors.New("the body cannot be read")
	}
	return fleetlock.Parse(body)
}

// hold decides, and decides again after each change of the Node.
func (s *Server) hold(ctx context.Context, id, source string, decide answer) fleetlock.Answer {
	node, refusal := s.find(ctx, id)
	if node == nil {
		return refusal
	}
	changed, release, ok := s.held.begin(node.Name)
	if !ok {
		return fleetlock.Busy(fmt.Sprintf("%d requests of Node %s are waiting already.", maxHeldPerNode, node.Name))
	}
	defer release()
	end := s.Clock.NewTimer(s.Hold)
	defer end.Stop()
	for {
		// The Node is read again: it may have changed between find and begin.
		current, refusal := s.find(ctx, id)
		switch {
		case current == nil:
			return refusal
		case s.CheckSource && !fleetlock.ComesFrom(current, source):
			return fleetlock.Foreign(current, source)
		}
		a := decide(ctx, current, id)
		if a.OK || !a.Waits || current.Name != node.Name { // Changes of a Node with another name do not wake this request.
			return a
		}
		select {
		case <-changed:
		case <-end.C():
			return a
		case <-ctx.Done():
			return a
		}
	}
}

// find returns the Node of a client as the cache has it, or a refusal.
func (s *Server) find(ctx context.Context, id string) (*corev1.Node, fleetlock.Answer) {
	var found [2]corev1.NodeList
	for i, index := range []string{machineIndex, firmwareIndex} {
		if err := s.Cache.List(ctx, &found[i], client.MatchingFields{index: id}); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot look up a FleetLock client")
		}
		if len(found[i].Items) > 0 {
			break
		}
	}
	node, refusal := fleetlock.Client(id, found[0].Items, found[1].Items)
	if node == nil {
		s.announcer.refused(append(found[0].Items, found[1].Items...), refusal)
	}
	return node, refusal
}

// preReboot answers from the cache. A yes is confirmed by a live read, because the cache of a
// replica may still show the previous boot of a host that has just booted.
func (s *Server) preReboot(ctx context.Context, cached *corev1.Node, id string) fleetlock.Answer {
	if !fleetlock.Passed(cached) {
		if s.Requests != nil {
			s.requests.record(ctx, s.Requests, cached, id, s.Clock.Now())
		}
		return fleetlock.PreReboot(cached, nil)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readLimit)
	defer cancel()
	var node corev1.Node
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(cached), &node); err != nil {
		return s.unread(ctx, cached, err)
	}
	record := protocol.RecordOf(&node)
	if !fleetlock.Passed(&node) {
		return fleetlock.PreReboot(&node, nil)
	}
	var policy v1alpha1.RebootPolicy
	if err := s.Live.Get(ctx, client.ObjectKey{Name: record.Grant.LedgerName()}, &policy); client.IgnoreNotFound(err) != nil {
		return s.unread(ctx, cached, err)
	}
	a := fleetlock.PreReboot(&node, policy.Status.Grants)
	if a.OK {
		ctrl.LoggerFrom(ctx).Info("The FleetLock client may reboot its host", "Node", klog.KObj(&node), "seq", record.Grant.Seq)
	}
	return a
}

// steadyState does not need confirmation, because an early yes only makes a client look for
// updates.
func (*Server) steadyState(_ context.Context, node *corev1.Node, _ string) fleetlock.Answer {
	return fleetlock.SteadyState(node)
}

func (s *Server) unread(ctx context.Context, node *corev1.Node, err error) fleetlock.Answer {
	if !apierrors.IsNotFound(err) {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot confirm that a FleetLock client may reboot its host", "Node", klog.KObj(node))
	}
	a := fleetlock.Unread(node)
	a.Waits = false // The client asks again in a few minutes. The return of the API server would not wake the request.
	return a
}

// statusOf returns the HTTP status of an answer. Clients look at yes and no alone.
func statusOf(a fleetlock.Answer) int {
	switch {
	case a.OK:
		return http.StatusOK
	case a.Reason == v1alpha1.ReasonTooManyRequests:
		return http.StatusTooManyRequests
	case a.Reason == v1alpha1.ReasonUnknownClient, a.Reason == v1alpha1.ReasonAmbiguousClient, a.Reason == v1alpha1.ReasonForeignAddress:
		return http.StatusForbidden
	}
	return http.StatusConflict
}

// write sends an answer.
func write(w http.ResponseWriter, status int, a fleetlock.Answer) {
	w.Header().Set("Content-Type", "application/json")
	if a.OK {
		w.WriteHeader(http.StatusOK)
		return
	}
	body, err := json.Marshal(a.Error())
	if err != nil {
		status = http.StatusInternalServerError
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // A client that has gone will retry.
}

// address returns the IP address that a request comes from.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
