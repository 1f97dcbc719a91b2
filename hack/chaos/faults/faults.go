// Package faults decides which requests fail, and how, and counts all faults of a schedule.
package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

// Faults injects failures into the requests on a wire. Its methods may be called from any
// goroutine.
type Faults struct {
	mu     sync.Mutex
	random *rand.Rand
	rates  map[schedule.Kind]float64
	struck map[schedule.Kind]int
	// denies plays a webhook, and strips a mutating policy.
	denies func(pod string) bool
	strips bool
}

// New returns Faults that let every request pass.
func New() *Faults {
	f := &Faults{}
	f.Seed(0)
	return f
}

// Seed restarts the random sequence and clears the rates and counts.
func (f *Faults) Seed(seed uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.random = rand.New(rand.NewPCG(seed, 1))
	f.rates, f.struck, f.denies, f.strips = map[schedule.Kind]float64{}, map[schedule.Kind]int{}, nil, false
}

// Deny plays a webhook from now on. denies reports whether it denies the eviction of a pod. If denies
// is nil, no webhook is installed.
func (f *Faults) Deny(denies func(pod string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.denies = denies
}

// Strip starts or stops a played mutating policy that drops active grants from writes of Nodes.
func (f *Faults) Strip(strips bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.strips = strips
}

// admission returns what the webhook or the policy does to a request, or nil if they let it pass.
func (f *Faults) admission(r *http.Request) wire.Func {
	f.mu.Lock()
	denies, strips := f.denies, f.strips
	f.mu.Unlock()
	switch {
	case denies != nil && wire.What(r) == "create pods/eviction" && denies(wire.Info(r).Name):
		return denied
	case strips && isNodePatch(r):
		return strip
	}
	return nil
}

var denied = wire.Fail(metav1.Status{
	Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: `admission webhook "chaos" denied the request: the pod is moved`,
})

// strip removes an active grant from a write of a Node.
func strip(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("reading a request: %w", err)
	}
	var patch map[string]any
	if err := json.Unmarshal(body, &patch); err != nil {
		return nil, fmt.Errorf("reading a patch: %w", err)
	}
	metadata, _ := patch["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if text, _ := annotations[v1alpha1.AnnotationGrant].(string); strings.Contains(text, string(protocol.GrantActive)) {
		delete(annotations, v1alpha1.AnnotationGrant)
		if body, err = json.Marshal(patch); err != nil {
			return nil, fmt.Errorf("writing a patch: %w", err)
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return next.RoundTrip(r)
}

// isNodePatch reports whether a request patches a Node or its status.
func isNodePatch(r *http.Request) bool {
	request := wire.What(r)
	return request == "patch nodes" || request == "patch nodes/status"
}

// Set sets the share of requests that fail in this way. Zero turns the fault off.
func (f *Faults) Set(kind schedule.Kind, rate float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rates[kind] = rate
}

// Count adds faults that did not hit a request, such as a killed process.
func (f *Faults) Count(kind schedule.Kind, faults int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.struck[kind] += faults
}

// Struck returns how many faults there were of each kind. Faults of requests count once per
// request.
func (f *Faults) Struck() map[schedule.Kind]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.struck)
}

// Strike implements wire.Func.
func (f *Faults) Strike(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if fault := f.admission(r); fault != nil {
		return fault(r, next)
	}
	if fault := failures[f.draw(r)]; fault != nil {
		return fault(r, next)
	}
	return next.RoundTrip(r)
}

// draw decides whether and how a request fails.
func (f *Faults) draw(r *http.Request) schedule.Kind {
	f.mu.Lock()
	defer f.mu.Unlock()
	kinds := []schedule.Kind{schedule.TooMany, schedule.ServerError}
	if wire.IsWrite(r) {
		kinds = append(kinds, schedule.Conflict, schedule.AnswerLost)
	}
	for _, kind := range kinds {
		if rate := f.rates[kind]; rate > 0 && f.random.Float64() < rate {
			f.struck[kind]++
			return kind
		}
	}
	return ""
}

// failures maps each kind of fault to what happens to the request.
var failures = map[schedule.Kind]wire.Func{
	schedule.Conflict:    wire.Fail(apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, "", errors.New("the object has been modified")).Status()),
	schedule.TooMany:     wire.Fail(apierrors.NewTooManyRequests("too many requests, please try again later", 1).Status()),
	schedule.ServerError: wire.Fail(apierrors.NewInternalError(errors.New("etcdserver: leader changed")).Status()),
	schedule.AnswerLost:  wire.Lose,
}
