package server

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
)

// writer writes the annotations of the cluster's Nodes.
type writer struct {
	client.Writer

	cluster *cluster
}

func (w writer) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	c := w.cluster
	data, err := patch.Data(object)
	var change struct {
		Metadata struct {
			ResourceVersion string
			Annotations     map[string]string
		}
	}
	if err := errors.Join(err, json.Unmarshal(data, &change)); err != nil {
		return err
	}
	c.mu.Lock()
	c.attempts++
	refusal := c.refusal
	if stored := c.live[object.GetName()]; refusal == nil && stored != nil && stored.ResourceVersion != change.Metadata.ResourceVersion {
		refusal = apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, object.GetName(), errors.New("changed"))
	}
	if refusal != nil {
		c.mu.Unlock()
		return refusal
	}
	n := c.nodes[object.GetName()].DeepCopy()
	c.mu.Unlock()
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	maps.Copy(n.Annotations, change.Metadata.Annotations)
	c.put(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
	return nil
}

func (c *cluster) written() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

func (c *cluster) tried() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attempts
}

func (c *cluster) get(name string) *corev1.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[name].DeepCopy()
}

// withRequests lets requests count.
func withRequests(s *Server) {
	c, _ := s.Cache.(*cluster)
	s.Requests = writer{cluster: c}
}

// requested returns the request that a Node shows.
func (h *harness) requested(node string) protocol.FleetLockRequest {
	h.Helper()
	r, err := protocol.ParseFleetLock(h.cluster.get(node).Annotations)
	if err != nil || r == nil {
		h.Fatalf("%v, %v", r, err)
	}
	return *r
}

func TestServer_RecordsTheRequestOfAClientIfAsked(t *testing.T) {
	h := start(t, withRequests)
	h.cluster.put(waiting("n1", machineID))
	h.hold("pre-reboot", clientID)
	h.hold("pre-reboot", clientID)
	if got := h.requested("n1"); got.BootID != "boot" || got.ID != clientID || !got.At.Time.Equal(h.clock.Now().UTC().Truncate(time.Second)) {
		t.Errorf("%+v", got)
	}
	if n := h.cluster.written(); n != 1 {
		t.Errorf("%d writes", n)
	}
}

func TestServer_RecordsNothingWithoutTheFlagOrForASteadyState(t *testing.T) {
	for call, adapt := range map[string]func(*Server){"pre-reboot": nil, "steady-state": withRequests} {
		t.Run(call, func(t *testing.T) {
			h := start(t, adapt)
			n := waiting("n1", machineID)
			if call == "steady-state" {
				n = passed(n) // Only a node in a reboot is not in its steady state.
			}
			h.cluster.put(n)
			h.hold(call, clientID)
			if n := h.cluster.tried(); n != 0 {
				t.Errorf("%d writes", n)
			}
		})
	}
}

// Anyone who reaches the port can ask any number of times, and others may overwrite the record.
func TestServer_WritesANodeOnceAMinuteAtMost(t *testing.T) {
	h := start(t, withRequests)
	h.cluster.put(waiting("n1", machineID))
	for minute := 1; minute <= 3; minute++ {
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan reply, 1)
			go func() {
				gone <- h.do(ctx, "POST", "/v1/pre-reboot", "true", `{"client_params":{"id":"n1","group":"default"}}`)
			}()
			h.until("the request to be held", func() bool { return h.count() == 1 })
			for range 3 {
				h.cluster.put(waiting("n1", machineID)) // without the record
			}
			cancel()
			<-gone
			h.until("nothing to be held", func() bool { return h.count() == 0 })
		}
		if n := h.cluster.tried(); n != minute {
			t.Fatalf("%d writes after %d minutes", n, minute)
		}
		h.clock.Step(time.Minute)
	}
}

// The Node of the cache may be older than the one that is stored. Then another replica may have written it.
func TestServer_RecordsOnTheNodeItHasRead(t *testing.T) {
	h := start(t, withRequests)
	n := waiting("n1", machineID)
	n.ResourceVersion = "1"
	newer := n.DeepCopy()
	newer.ResourceVersion = "2"
	h.cluster.live["n1"] = newer
	h.cluster.put(n)
	h.hold("pre-reboot", clientID)
	h.until("the write to be refused", func() bool { return h.cluster.tried() == 1 })
	h.cluster.put(newer)
	h.until("the request to be recorded", func() bool { return h.cluster.written() == 1 })
	h.requested("n1")
}

// A client gets an answer even if its request cannot be recorded, and the write is not repeated all
// the time.
func TestServer_HoldsARequestThatItCannotRecord(t *testing.T) {
	h := start(t, withRequests)
	h.cluster.refusal = errors.New("forbidden")
	h.cluster.put(waiting("n1", machineID))
	held := h.hold("pre-reboot", clientID)
	for range 5 {
		h.cluster.put(waiting("n1", machineID))
	}
	h.clock.Step(DefaultHold)
	h.expect(<-held, 409, "window_closed")
	if n := h.cluster.tried(); n > 2 {
		t.Errorf("%d tries", n)
	}
}

// A client that disconnects frees its connection and its place for the next one of its Node.
func TestServer_ServesAsManyAsMayWaitOneAfterTheOther(t *testing.T) {
	h := start(t, nil)
	h.cluster.put(waiting("n1", machineID))
	for range 3 * maxHeldPerNode {
		conn := h.hang("n1")
		h.until("the request to be held", func() bool { return h.count() == 1 })
		_ = conn.Close()
		h.until("nothing to be held", func() bool { return h.count() == 0 })
	}
}
