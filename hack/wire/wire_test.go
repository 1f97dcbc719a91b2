package wire_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/wire"
)

// server counts the requests that arrive. A watch streams until its client closes it.
func server(t *testing.T) (address string, carried *atomic.Int64) {
	t.Helper()
	carried = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		carried.Add(1)
		_, _ = io.WriteString(w, "{}\n")
		if req.URL.Query().Has("watch") {
			w.(http.Flusher).Flush()
			<-req.Context().Done()
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, carried
}

// send sends a request, and returns the status code of the answer, or 0 without an answer.
func send(t *testing.T, through http.RoundTripper, method, url string) (code int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := through.RoundTrip(req)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// watch begins a watch.
func watch(t *testing.T, through http.RoundTripper, url string) io.Reader {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"?watch=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := through.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp.Body
}

func TestDrop_EndsWatches(t *testing.T) {
	for as, want := range map[error]error{wire.ErrCut: wire.ErrCut, io.EOF: nil} {
		url, _ := server(t)
		var w wire.Wire
		stream := watch(t, w.Wrap(http.DefaultTransport), url)
		first := w.Drop(wire.IsWatch, as)
		if _, err := io.ReadAll(stream); !errors.Is(err, want) {
			t.Errorf("the watch has ended with %v, want %v", err, want)
		}
		if second := w.Drop(wire.IsWatch, as); first != 1 || second != 0 {
			t.Errorf("dropped %d watches and then %d, and there was one", first, second)
		}
	}
}

// TestWire_Cut tests that a cut ends open requests and blocks new ones until Restore.
func TestWire_Cut(t *testing.T) {
	url, carried := server(t)
	var line wire.Wire
	through := line.Wrap(http.DefaultTransport)
	stream := watch(t, through, url)
	line.Cut()
	if _, err := io.ReadAll(stream); err == nil {
		t.Error("the watch goes on")
	}
	if code := send(t, through, http.MethodGet, url); code != 0 || carried.Load() != 1 {
		t.Errorf("a request went through a cut line: code %d, %d were carried out", code, carried.Load())
	}
	line.Restore()
	if code := send(t, through, http.MethodGet, url); code != http.StatusOK {
		t.Errorf("code %d after the line was restored", code)
	}
}

// TestWire_Hold tests that a held wire stops requests in progress, like SIGSTOP, until it is
// released.
func TestWire_Hold(t *testing.T) {
	url, carried := server(t)
	var line wire.Wire
	through := line.Wrap(http.DefaultTransport)
	line.Hold()
	done := make(chan int, 1)
	go func() {
		done <- send(t, through, http.MethodGet, url)
	}()
	select {
	case code := <-done:
		t.Fatalf("a request passed a line that is held (%d)", code)
	case <-time.After(50 * time.Millisecond):
	}
	if carried.Load() != 0 {
		t.Error("it was carried out")
	}
	line.Release()
	if code := <-done; code != http.StatusOK {
		t.Errorf("code %d after it was let go", code)
	}
}

func TestWire_HeldWhenAllEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var line wire.Wire
	line.Hold()
	cancel()
	if err := line.Pass(ctx); err == nil {
		t.Error("it passed")
	}
}

// TestMeddle tests that reads pass while writes are refused, as for an agent that was killed.
func TestMeddle(t *testing.T) {
	url, carried := server(t)
	var line wire.Wire
	through := line.Wrap(http.DefaultTransport)
	line.Meddle(wire.IsWrite, wire.Refuse)
	if code := send(t, through, http.MethodGet, url); code != http.StatusOK {
		t.Errorf("code %d of a read", code)
	}
	if code := send(t, through, http.MethodPatch, url); code != 0 || carried.Load() != 1 {
		t.Errorf("a dead client wrote: code %d, %d were carried out", code, carried.Load())
	}
}
