// Package faults decides which requests fail, and how, and counts all faults of a schedule.
package faults

import (
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	f.rates, f.struck = map[schedule.Kind]float64{}, map[schedule.Kind]int{}
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
