package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/fleetlock"
)

// cluster holds the objects that the server reads, as a cache and live.
type cluster struct {
	cache.Cache

	mu       sync.Mutex
	nodes    map[string]*corev1.Node
	live     map[string]*corev1.Node // overrides nodes in live reads
	ledger   []v1alpha1.LedgerEntry
	down     error
	handlers []toolscache.ResourceEventHandler
	reads    int
	writes   int
	// attempts counts the attempted writes. They fail with refusal, unless it is nil.
	attempts int
	refusal  error
}

func (c *cluster) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var options client.ListOptions
	options.ApplyOptions(opts)
	wanted := options.FieldSelector.Requirements()[0]
	ids := map[string]func(*corev1.Node) []string{machineIndex: fleetlock.MachineIDs, firmwareIndex: fleetlock.FirmwareIDs}[wanted.Field]
	for _, n := range c.nodes {
		if slices.Contains(ids(n), wanted.Value) {
			list.(*corev1.NodeList).Items = append(list.(*corev1.NodeList).Items, *n.DeepCopy())
		}
	}
	return nil
}

func (c *cluster) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	if c.down != nil {
		return c.down
	}
	switch o := object.(type) {
	case *corev1.Node:
		n := c.live[key.Name]
		if n == nil {
			n = c.nodes[key.Name]
		}
		if n == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, key.Name)
		}
		n.DeepCopyInto(o)
	case *v1alpha1.RebootPolicy:
		o.Status.Grants = slices.Clone(c.ledger)
	}
	return nil
}

func (c *cluster) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return informer{cluster: c}, nil
}

func (*cluster) WaitForCacheSync(context.Context) bool { return true }

type informer struct {
	cache.Informer

	cluster *cluster
}

func (i informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.cluster.mu.Lock()
	defer i.cluster.mu.Unlock()
	i.cluster.handlers = append(i.cluster.handlers, h)
	return nil, nil
}

// put changes a Node, as an informer sees it.
func (c *cluster) put(n *corev1.Node) {
	c.mu.Lock()
	c.nodes[n.Name] = n
	handlers := slices.Clone(c.handlers)
	c.mu.Unlock()
	for _, h := range handlers {
		h.OnUpdate(nil, n)
	}
}

func (c *cluster) remove(n *corev1.Node) {
	c.mu.Lock()
	delete(c.nodes, n.Name)
	handlers := slices.Clone(c.handlers)
	c.mu.Unlock()
	for _, h := range handlers {
		h.OnDelete(n)
	}
}

const (
	machineID = "0123456789abcdef0123456789abcdef"
	clientID  = "583627a932274834a8ebd99f4ed41c0d"
)

// waiting is a Node that may not reboot yet.
func waiting(name, machineID string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1"}}
	n.Status.NodeInfo.MachineID, n.Status.NodeInfo.BootID = machineID, "boot"
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: v1alpha1.NodeRebootRequired, Status: corev1.ConditionTrue, Reason: "UpdateStaged", Message: "staged"},
		{Type: v1alpha1.NodeRebootPermitted, Status: corev1.ConditionFalse, Reason: "WindowClosed", Message: "no window is open"},
	}
	return n
}

// passed is the Node past the point of no return.
func passed(n *corev1.Node) *corev1.Node {
	n = n.DeepCopy()
	t := metav1.NewTime(time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC))
	n.Annotations = map[string]string{
		v1alpha1.AnnotationGrant:    protocol.Grant{Policy: "workers", Seq: 7, BootID: "boot", State: protocol.GrantActive, At: t}.String(),
		v1alpha1.AnnotationProgress: protocol.Progress{Seq: 7, Phase: protocol.PhaseRebooting, BootID: "boot", At: t}.String(),
	}
	return n
}

func entry(name string) v1alpha1.LedgerEntry {
	return v1alpha1.LedgerEntry{Node: name, NodeUID: "uid-1", Seq: 7, BootID: "boot"}
}

// harness is a server on a real port.
type harness struct {
	*testing.T

	cluster  *cluster
	server   *Server
	clock    *testclock.FakeClock
	recorder *events.FakeRecorder
	stop     func()
}

func start(t *testing.T, adapt func(*Server)) *harness {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{
		T: t, cluster: &cluster{nodes: map[string]*corev1.Node{}, live: map[string]*corev1.Node{}},
		clock: testclock.NewFakeClock(time.Now()), recorder: events.NewFakeRecorder(100),
	}
	h.server = &Server{
		Listener: listener, Cache: h.cluster, Live: h.cluster, Recorder: h.recorder, Clock: h.clock, Hold: DefaultHold,
		Namespace: "reboot-operator-system",
	}
	if adapt != nil {
		adapt(h.server)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.server.Start(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(h.stop)
	return h
}

// reply is the response that a client gets.
type reply struct {
	status int
	body   fleetlock.Error
	err    error
}

func (h *harness) do(ctx context.Context, method, path, header, body string) reply {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+h.server.Listener.Addr().String()+path, strings.NewReader(body))
	if err != nil {
		h.Error(err)
	}
	if header != "" {
		request.Header.Set("fleet-lock-protocol", header)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return reply{err: err}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	r := reply{status: response.StatusCode, err: err}
	if len(text) > 0 {
		r.err = errors.Join(err, json.Unmarshal(text, &r.body))
	}
	return r
}

func (h *harness) ask(call, id string) reply {
	return h.do(h.Context(), http.MethodPost, "/v1/"+call, "true", fmt.Sprintf(`{"client_params":{"id":%q,"group":"default"}}`, id))
}

// hold begins a request that waits.
func (h *harness) hold(call, id string) <-chan reply {
	h.Helper()
	before := h.count()
	replies := make(chan reply, 1)
	go func() { replies <- h.ask(call, id) }()
	h.until("a request to be held", func() bool { return h.count() == before+1 && h.clock.HasWaiters() })
	return replies
}

// count returns the number of held requests.
func (h *harness) count() int {
	h.server.held.mu.Lock()
	defer h.server.held.mu.Unlock()
	n := 0
	for _, of := range h.server.held.nodes {
		n += len(of)
	}
	return n
}

func (h *harness) until(description string, done func() bool) {
	h.Helper()
	deadline := time.After(30 * time.Second)
	for !done() {
		select {
		case <-deadline:
			h.Fatalf("waited in vain for %s", description)
		default:
			runtime.Gosched()
		}
	}
}

func (h *harness) expect(got reply, status int, kind string) {
	h.Helper()
	if got.err != nil || got.status != status || got.body.Kind != kind || (kind == "") != (got.body.Value == "") {
		h.Errorf("%+v, want %d %s", got, status, kind)
	}
}

func TestServer_KeepsToTheProtocol(t *testing.T) {
	h := start(t, nil)
	n := waiting("n1", machineID)
	h.cluster.put(passed(n))
	h.cluster.ledger = []v1alpha1.LedgerEntry{entry("n1")}
	good := fmt.Sprintf(`{"client_params":{"id":%q,"group":"default"}}`, clientID)
	for name, tc := range map[string]struct {
		method, path, header, body string
		status                     int
		kind                       string
	}{
		"pre-reboot":                  {"POST", "/v1/pre-reboot", "true", good, 200, ""},
		"again":                       {"POST", "/v1/pre-reboot", "true", good, 200, ""},
		"with dashes and capitals":    {"POST", "/v1/pre-reboot", "true", strings.Replace(good, clientID, "583627A9-3227-4834-A8EB-D99F4ED41C0D", 1), 200, ""},
		"by the Node's name":          {"POST", "/v1/pre-reboot", "true", strings.Replace(good, clientID, "n1", 1), 200, ""},
		"any group":                   {"POST", "/v1/pre-reboot", "true", strings.Replace(good, "default", "workers.eu-1", 1), 200, ""},
		"a missing header":            {"POST", "/v1/pre-reboot", "", good, 400, "invalid_request"},
		"another header":              {"POST", "/v1/pre-reboot", "1", good, 400, "invalid_request"},
		"another method":              {"GET", "/v1/pre-reboot", "true", "", 404, "invalid_request"},
		"another path":                {"POST", "/v2/pre-reboot", "true", good, 404, "invalid_request"},
		"another host's id":           {"POST", "/v1/pre-reboot", "true", strings.Replace(good, clientID, "975228d46dc94622b9bbe16671e2b58d", 1), 403, "unknown_client"},
		"the machine ID itself":       {"POST", "/v1/pre-reboot", "true", strings.Replace(good, clientID, machineID, 1), 403, "unknown_client"},
		"a group with spaces":         {"POST", "/v1/pre-reboot", "true", strings.Replace(good, "default", "a b", 1), 400, "invalid_request"},
		"a body of 5 KiB":             {"POST", "/v1/pre-reboot", "true", strings.Repeat(" ", 5<<10) + good, 400, "invalid_request"},
		"an id of 1 MB":               {"POST", "/v1/pre-reboot", "true", strings.Replace(good, clientID, strings.Repeat("a", 1<<20), 1), 400, "invalid_request"},
		"steady-state of another one": {"POST", "/v1/steady-state", "true", strings.Replace(good, clientID, "n2", 1), 403, "unknown_client"},
	} {
		t.Run(name, func(t *testing.T) {
			h := *h
			h.T = t
			h.expect(h.do(t.Context(), tc.method, tc.path, tc.header, tc.body), tc.status, tc.kind)
		})
	}
}

func TestServer_HoldsARequestUntilTheNodeMayGo(t *testing.T) {
	h := start(t, nil)
	n := waiting("n1", machineID)
	h.cluster.ledger = []v1alpha1.LedgerEntry{entry("n1")}
	h.cluster.put(n)
	first, second := h.hold("pre-reboot", clientID), h.hold("pre-reboot", clientID)
	h.cluster.put(n) // a heartbeat
	h.cluster.put(passed(n))
	h.expect(<-first, 200, "")
	h.expect(<-second, 200, "")
	h.until("nothing to be held", func() bool { return h.count() == 0 })
}

func TestServer_AnswersNoAtTheEndOfTheHold(t *testing.T) {
	h := start(t, nil)
	h.cluster.put(waiting("n1", machineID))
	held := h.hold("pre-reboot", clientID)
	h.clock.Step(DefaultHold)
	got := <-held
	h.expect(got, 409, "window_closed")
	if got.body.Value != "no window is open" {
		t.Errorf("%q", got.body.Value)
	}
}

func TestServer_AnswersNoAtOnceWhenADrainFails(t *testing.T) {
	h := start(t, nil)
	n := waiting("n1", machineID)
	h.cluster.put(n)
	held := h.hold("pre-reboot", clientID)
	n = n.DeepCopy()
	n.Status.Conditions[1].Reason, n.Status.Conditions[1].Message = "BackingOff", "the drain failed"
	h.cluster.put(n)
	h.expect(<-held, 409, "backing_off")
}

func TestServer_ThatEndsAnswersNo(t *testing.T) {
	h := start(t, nil)
	h.cluster.put(waiting("n1", machineID))
	held := h.hold("pre-reboot", clientID)
	h.stop()
	h.expect(<-held, 409, "window_closed")
}

func TestServer_ForgetsAClientThatGoesAway(t *testing.T) {
	h := start(t, nil)
	h.cluster.put(waiting("n1", machineID))
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan reply, 1)
	go func() {
		gone <- h.do(ctx, http.MethodPost, "/v1/pre-reboot", "true", fmt.Sprintf(`{"client_params":{"id":%q,"group":"default"}}`, clientID))
	}()
	h.until("the request to be held", func() bool { return h.count() == 1 })
	cancel()
	<-gone
	h.until("nothing to be held", func() bool { return h.count() == 0 })
}

func TestServer_RefusesAClientWhoseNodeIsDeletedWhileItWaits(t *testing.T) {
	h := start(t, nil)
	n := waiting("n1", machineID)
	h.cluster.put(n)
	held := h.hold("pre-reboot", clientID)
	h.cluster.remove(n)
	h.expect(<-held, 403, "unknown_client")
}

// A request is woken by the Node for which it waits.
func TestServer_AnswersAClientWhoseNodeIsRegisteredUnderAnotherName(t *testing.T) {
	h := start(t, nil)
	n := waiting("n1", machineID)
	h.cluster.put(n)
	held := h.hold("pre-reboot", clientID)
	h.cluster.put(waiting("n2", machineID))
	h.cluster.remove(n)
	h.expect(<-held, 409, "window_closed")
	h.hold("pre-reboot", clientID)
}

func TestServer_RefusesAClientWhoseMachineIDIsClonedWhileItWaits(t *testing.T) {
	h := start(t, nil)
	n := waiting("n1", machineID)
	h.cluster.put(n)
	held := h.hold("pre-reboot", clientID)
	h.cluster.put(waiting("n2", machineID))
	h.cluster.put(n)
	h.expect(<-held, 403, "ambiguous_client")
}

func TestServer_NamesAFewOfManyClonesInEvents(t *testing.T) {
	h := start(t, nil)
	for i := range 50 {
		h.cluster.put(waiting(fmt.Sprintf("n%d", i), machineID))
	}
	h.expect(h.ask("pre-reboot", clientID), 403, "ambiguous_client")
	if n := len(h.recorder.Events); n != maxAnnounced {
		t.Errorf("%d events", n)
	}
}

// A replica's cache may still show the previous boot.
func TestServer_ConfirmsPermissionWithTheAPIServer(t *testing.T) {
	n := passed(waiting("n1", machineID))
	booted := n.DeepCopy()
	booted.Status.NodeInfo.BootID = "next"
	for name, tc := range map[string]struct {
		live   *corev1.Node
		ledger []v1alpha1.LedgerEntry
		down   error
		kind   string
	}{
		"the host has booted since":       {live: booted, ledger: []v1alpha1.LedgerEntry{entry("n1")}, kind: "window_closed"},
		"the ledger does not have it":     {live: n, kind: "grant_withdrawn"},
		"the API server does not respond": {live: n, ledger: []v1alpha1.LedgerEntry{entry("n1")}, down: errors.New("refused"), kind: "not_confirmed"},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, nil)
			h.cluster.put(n)
			h.cluster.live["n1"], h.cluster.ledger, h.cluster.down = tc.live, tc.ledger, tc.down
			if tc.down != nil {
				h.expect(h.ask("pre-reboot", clientID), 409, tc.kind)
				return
			}
			held := h.hold("pre-reboot", clientID)
			h.clock.Step(DefaultHold)
			h.expect(<-held, 409, tc.kind)
		})
	}
}

func TestServer_RefusesClonesAndStrangersWithOneEventAMinute(t *testing.T) {
	h := start(t, nil)
	h.cluster.put(waiting("n1", machineID))
	h.cluster.put(waiting("n2", machineID))
	for range 5 {
		h.expect(h.ask("pre-reboot", clientID), 403, "ambiguous_client")
		h.expect(h.ask("steady-state", "nobody"), 403, "unknown_client")
	}
	if n := len(h.recorder.Events); n != 3 { // One about each clone, and one about the stranger.
		t.Errorf("%d events", n)
	}
	h.clock.Step(time.Minute)
	h.expect(h.ask("pre-reboot", "nobody"), 403, "unknown_client")
	if n := len(h.recorder.Events); n != 4 {
		t.Errorf("%d events a minute later", n)
	}
}

func TestServer_ChecksTheSourceIfAsked(t *testing.T) {
	h := start(t, func(s *Server) { s.CheckSource = true })
	n := passed(waiting("n1", machineID))
	h.cluster.ledger = []v1alpha1.LedgerEntry{entry("n1")}
	h.cluster.put(n)
	h.expect(h.ask("pre-reboot", clientID), 200, "")
	n = n.DeepCopy()
	n.Status.Addresses[0].Address = "192.0.2.7"
	h.cluster.put(n)
	h.expect(h.ask("pre-reboot", clientID), 403, "foreign_address")
}

func TestServer_HoldsAFewRequestsOfANode(t *testing.T) {
	h := start(t, nil)
	h.cluster.put(waiting("n1", machineID))
	for range maxHeldPerNode {
		h.hold("pre-reboot", clientID)
	}
	h.expect(h.ask("pre-reboot", clientID), 429, "too_many_requests")
}

func TestServer_RefusesMoreConnectionsThanItMayHave(t *testing.T) {
	h := start(t, func(s *Server) { s.connections = 2 })
	h.cluster.put(waiting("n1", machineID))
	first := h.hang("n1")
	h.hang("n1")
	h.until("both to be held", func() bool { return h.count() == 2 })
	h.expectRefusedConnection()
	_ = first.Close()
	h.until("one to be held", func() bool { return h.count() == 1 })
	h.until("another to be held in its place", func() bool {
		h.hang("n1") // It is refused as long as the server has not yet closed the other's connection.
		return h.count() == 2
	})
	h.expectRefusedConnection()
}

// expectRefusedConnection connects without asking, because the server reads nothing before it refuses.
func (h *harness) expectRefusedConnection() {
	h.Helper()
	conn := h.dial()
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	text, err := io.ReadAll(conn)
	if !strings.Contains(string(text), "429 Too Many Requests") || !strings.Contains(string(text), "too_many_requests") {
		h.Errorf("%q (%v), want 429", text, err)
	}
}

// What a client announces is refused before it is read.
func TestServer_ReadsNoMoreThanARequestMayHave(t *testing.T) {
	h := start(t, nil)
	h.cluster.put(waiting("n1", machineID))
	for want, request := range map[string]string{
		"has more than 4096 bytes":            "Content-Length: 1073741824\r\n\r\n" + strings.Repeat(" ", 5<<10),
		"431 Request Header Fields Too Large": strings.Repeat("X-Padding: "+strings.Repeat("x", 1000)+"\r\n", 30) + "\r\n",
	} {
		conn := h.dial()
		go fmt.Fprint(conn, "POST /v1/pre-reboot HTTP/1.1\r\nHost: x\r\nfleet-lock-protocol: true\r\n"+request)
		if text, _ := io.ReadAll(conn); !strings.Contains(string(text), want) {
			t.Errorf("%q, want %q", text, want)
		}
	}
}

// A client that sends its request slowly is disconnected, and the others are served.
func TestServer_EndsASlowClient(t *testing.T) {
	h := start(t, func(s *Server) { s.slow = 100 * time.Millisecond })
	h.cluster.put(passed(waiting("n1", machineID)))
	h.cluster.ledger = []v1alpha1.LedgerEntry{entry("n1")}
	for name, sent := range map[string]string{
		"nothing":                "",
		"no end of its headers":  "POST /v1/pre-reboot HTTP/1.1\r\nHost: x\r\n",
		"only some of its body":  "POST /v1/pre-reboot HTTP/1.1\r\nHost: x\r\nfleet-lock-protocol: true\r\nContent-Length: 100\r\n\r\n{",
		"a body without an end":  "POST /v1/pre-reboot HTTP/1.1\r\nHost: x\r\nfleet-lock-protocol: true\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
		"headers without an end": "POST /v1/pre-reboot HTTP/1.1\r\n" + strings.Repeat("X-Padding: "+strings.Repeat("x", 1000)+"\r\n", 20),
	} {
		t.Run(name, func(t *testing.T) {
			conn := h.dial()
			fmt.Fprint(conn, sent)
			h.expect(h.ask("pre-reboot", clientID), 200, "")
			_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
			if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("still connected")
			}
		})
	}
}

// dial connects to the server until the end of the test.
func (h *harness) dial() net.Conn {
	h.Helper()
	conn, err := net.Dial("tcp", h.server.Listener.Addr().String())
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = conn.Close() })
	return conn
}

// hang begins the request of a Node's client, on a connection that costs this test little.
func (h *harness) hang(node string) net.Conn {
	conn := h.dial()
	body := fmt.Sprintf(`{"client_params":{"id":%q,"group":"default"}}`, node)
	fmt.Fprintf(conn, "POST /v1/pre-reboot HTTP/1.1\r\nHost: x\r\nfleet-lock-protocol: true\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return conn
}

// maxHeldBytes is the memory that a held request may take. 200 of them take less than 8 MiB.
const maxHeldBytes = 40 << 10

// 200 nodes wait at the same time. The memory of each is limited, and during that time the API
// server is neither read nor written.
func TestServer_HoldsTheRequestsOf200Nodes(t *testing.T) {
	h := start(t, withRequests)
	const nodes = 200
	name := func(i int) string { return fmt.Sprintf("n%d", i) }
	for i := range nodes {
		h.cluster.put(waiting(name(i), ""))
	}
	before := heap()
	var conns [nodes]net.Conn
	for i := range conns {
		conns[i] = h.hang(name(i))
	}
	h.until("all requests to be held and recorded", func() bool { return h.count() == nodes && h.cluster.written() == nodes })
	perRequest := (heap() - before) / nodes
	t.Logf("%d bytes for each held request", perRequest)
	if perRequest > maxHeldBytes {
		t.Errorf("%d bytes for each held request, want at most %d", perRequest, maxHeldBytes)
	}
	for range 5 { // heartbeats
		h.clock.Step(2 * time.Minute)
		for i := range nodes {
			h.cluster.put(h.cluster.get(name(i)))
		}
	}
	h.cluster.mu.Lock()
	if h.cluster.reads != 0 || h.cluster.writes != nodes {
		t.Errorf("%d reads of the API server and %d writes for %d requests", h.cluster.reads, h.cluster.writes, nodes)
	}
	h.cluster.mu.Unlock()
	for i := range nodes {
		h.cluster.mu.Lock()
		h.cluster.ledger = append(h.cluster.ledger, entry(name(i)))
		h.cluster.mu.Unlock()
		h.cluster.put(passed(waiting(name(i), "")))
	}
	for i := range conns {
		response, err := http.ReadResponse(bufio.NewReader(conns[i]), nil)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %v", name(i), response, err)
		}
		_ = response.Body.Close()
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
