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

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/chaos/wire"
)

// server counts the requests that are carried out; a watch streams until its client goes.
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

func send(t *testing.T, through http.RoundTripper, method, url string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return through.RoundTrip(req)
}

// TestWire_Fails in each way that is asked for, and reports it: what is refused is not carried out, what is lost is.
func TestWire_Fails(t *testing.T) {
	cases := map[schedule.Kind]struct {
		code    int
		carried int64
	}{
		"":                   {http.StatusOK, 1},
		schedule.Conflict:    {http.StatusConflict, 0},
		schedule.TooMany:     {http.StatusTooManyRequests, 0},
		schedule.ServerError: {http.StatusInternalServerError, 0},
		schedule.AnswerLost:  {0, 1},
	}
	for kind, want := range cases {
		t.Run(string(kind), func(t *testing.T) {
			url, carried := server(t)
			w := wire.New(http.DefaultTransport)
			w.Set(kind, 1)
			resp, err := send(t, w.Line(t.Context()), http.MethodPatch, url)
			code := 0
			if err == nil {
				code = resp.StatusCode
				resp.Body.Close()
			}
			if code != want.code || carried.Load() != want.carried {
				t.Errorf("code %d (%v), carried out %d times, want %d and %d", code, err, carried.Load(), want.code, want.carried)
			}
			if kind != "" && w.Struck()[kind] != 1 {
				t.Errorf("it shows it struck %v", w.Struck())
			}
			if kind == schedule.TooMany && resp.Header.Get("Retry-After") == "" {
				t.Error("nothing shows when to try again")
			}
		})
	}
}

func TestWire_DropsWatches(t *testing.T) {
	url, _ := server(t)
	w := wire.New(http.DefaultTransport)
	resp, err := send(t, w.Line(t.Context()), http.MethodGet, url+"?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n := w.DropWatches(); n != 1 {
		t.Errorf("dropped %d watches", n)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the watch has ended in order")
	}
	if n := w.DropWatches(); n != 0 {
		t.Errorf("dropped %d watches that were dropped", n)
	}
}

// TestLine_Cut ends what is under way and lets nothing through, until it is restored.
func TestLine_Cut(t *testing.T) {
	url, carried := server(t)
	line := wire.New(http.DefaultTransport).Line(t.Context())
	resp, err := send(t, line, http.MethodGet, url+"?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	line.Cut()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the watch goes on")
	}
	if refused, err := send(t, line, http.MethodGet, url); err == nil {
		refused.Body.Close()
		t.Error("a request went through a cut line")
	}
	if n := carried.Load(); n != 1 {
		t.Errorf("%d requests were carried out", n)
	}
	line.Restore(t.Context())
	again, err := send(t, line, http.MethodGet, url)
	if err != nil {
		t.Fatal(err)
	}
	again.Body.Close()
}

// TestLine_Hold stops a request where it is, as SIGSTOP does, until it is released.
func TestLine_Hold(t *testing.T) {
	url, carried := server(t)
	line := wire.New(http.DefaultTransport).Line(t.Context())
	line.Hold()
	done := make(chan error, 1)
	go func() {
		resp, err := send(t, line, http.MethodGet, url)
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("a request passed a line that is held (%v)", err)
	case <-time.After(50 * time.Millisecond):
	}
	if carried.Load() != 0 {
		t.Error("it was carried out")
	}
	line.Release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestLine_HeldWhenAllEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	line := wire.New(http.DefaultTransport).Line(ctx)
	line.Hold()
	cancel()
	if err := line.Pass(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("it passed: %v", err)
	}
}

// TestServe is the way of a process: plain HTTP on this machine, with the same faults.
func TestServe(t *testing.T) {
	url, carried := server(t)
	w := wire.New(http.DefaultTransport)
	line := w.Line(t.Context())
	address, err := line.Serve(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := send(t, http.DefaultTransport, http.MethodGet, address)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	line.Cut()
	if refused, err := send(t, http.DefaultTransport, http.MethodPatch, address); err == nil {
		refused.Body.Close()
		t.Error("a request went through a cut line")
	}
	if n := carried.Load(); n != 1 {
		t.Errorf("%d requests were carried out", n)
	}
}

// TestLine_ReadOnly lets an agent that was killed read, and nothing else.
func TestLine_ReadOnly(t *testing.T) {
	url, carried := server(t)
	line := wire.New(http.DefaultTransport).Line(t.Context())
	line.ReadOnly()
	resp, err := send(t, line, http.MethodGet, url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if refused, err := send(t, line, http.MethodPatch, url); err == nil {
		refused.Body.Close()
		t.Error("a dead client wrote")
	}
	if n := carried.Load(); n != 1 {
		t.Errorf("%d requests were carried out", n)
	}
}
