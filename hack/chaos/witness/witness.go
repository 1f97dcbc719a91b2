// Package witness reads every revision of Nodes, pods, PodDisruptionBudgets and policies from etcd
// through its gateway. It does not depend on an API server, a cache or a client of the operator, so
// a restart of the API server leaves no gap.
package witness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/reboot-operator/reboot-operator/hack/judge"
)

const (
	prefix, afterPrefix = "/registry/", "/registry0"
	nodes               = "/registry/minions/"
	pods                = "/registry/pods/"
	budgets             = "/registry/poddisruptionbudgets/"
	policies            = "/registry/reboot-operator.io/rebootpolicies/"
)

// reconnect is the delay before a broken watch resumes.
const reconnect = 50 * time.Millisecond

// Witness follows one etcd.
type Witness struct {
	address string
	decoder runtime.Decoder

	mu sync.Mutex
	// next is the first revision that has not been seen.
	next    int64
	last    map[string]judge.Change // by key
	history []judge.Change
	seen    func(judge.Change)
}

// New returns a witness of the etcd at a URL, from its first revision on. The scheme must know all
// kinds that are stored.
func New(address string, scheme *runtime.Scheme) *Witness {
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	return &Witness{address: address, decoder: decoder, next: 1, last: map[string]judge.Change{}, seen: func(judge.Change) {}}
}

// Begin starts a new history. It calls seen for each revision, in order, from one goroutine.
func (w *Witness) Begin(notify func(judge.Change)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history, w.seen = nil, notify
}

// History returns everything seen since Begin, or nil if the witness has not reached the given
// revision.
func (w *Witness) History(revision int64) []judge.Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next <= revision {
		return nil
	}
	return slices.Clone(w.history)
}

// Present returns the latest revisions of all objects that exist.
func (w *Witness) Present() []judge.Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.last))
}

// Run follows etcd until ctx ends. It fails if etcd has compacted the next revision, because the
// history would have a gap.
func (w *Witness) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.watch(ctx); err != nil {
			return err
		}
		select {
		case <-time.After(reconnect):
		case <-ctx.Done():
		}
	}
	return nil
}

// batch is one answer of the gateway to a watch. In its JSON, bytes are base64 and numbers are
// strings.
type batch struct {
	Result struct {
		Events  []event `json:"events"`
		Compact int64   `json:"compact_revision,string"`
	} `json:"result"`
}

type event struct {
	Type string `json:"type"` // omitted for PUT
	KV   struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
		Mod   int64  `json:"mod_revision,string"`
	} `json:"kv"`
}

// watch reads events until the connection ends, which is not an error.
func (w *Witness) watch(ctx context.Context) error {
	body, err := json.Marshal(map[string]any{"create_request": map[string]any{
		"key": []byte(prefix), "range_end": []byte(afterPrefix), "start_revision": strconv.FormatInt(w.next, 10),
	}})
	if err != nil {
		return fmt.Errorf("encoding a watch: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.address+"/v3/watch", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("watching etcd: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	stream := json.NewDecoder(resp.Body)
	for {
		var b batch
		switch err := stream.Decode(&b); {
		case err == nil:
		case ctx.Err() != nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, new(net.Error)):
			return nil
		default:
			return fmt.Errorf("decoding a watch of etcd: %w", err)
		}
		if b.Result.Compact > 0 {
			return fmt.Errorf("watching etcd: revision %d is compacted, the oldest is %d", w.next, b.Result.Compact)
		}
		if err := w.take(b.Result.Events); err != nil {
			return err
		}
	}
}

func (w *Witness) take(events []event) error {
	next := w.next
	for _, e := range events {
		if e.KV.Mod < w.next {
			continue
		}
		if err := w.one(string(e.KV.Key), e); err != nil {
			return fmt.Errorf("reading %s: %w", e.KV.Key, err)
		}
		next = e.KV.Mod + 1
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = next // etcd never splits a transaction
	return nil
}

func (w *Witness) one(key string, e event) error {
	if !slices.ContainsFunc([]string{nodes, pods, budgets, policies}, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
		return nil
	}
	r := w.last[key]
	if r.Gone = e.Type == "DELETE"; !r.Gone {
		object, _, err := w.decoder.Decode(e.KV.Value, nil, nil)
		if err != nil {
			return err
		}
		known, _ := object.(metav1.Object)
		known.SetResourceVersion(strconv.FormatInt(e.KV.Mod, 10))
		r = judge.ChangeOf(known, time.Now(), false)
	}
	r.At, r.Revision = time.Now(), e.KV.Mod
	w.note(key, r)
	return nil
}

func (w *Witness) note(key string, r judge.Change) {
	w.mu.Lock()
	if w.last[key] = r; r.Gone {
		delete(w.last, key)
	}
	w.history = append(w.history, r)
	notify := w.seen
	w.mu.Unlock()
	notify(r)
}
