package wire_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/wire"
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

// send sends a request, and returns the code of the answer and its header. 0: there was none.
func send(t *testing.T, through http.RoundTripper, method, url string) (code int, header http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := through.RoundTrip(req)
	if err != nil {
		return 0, nil
	}
	resp.Body.Close()
	return resp.StatusCode, resp.Header
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
			code, header := send(t, w.Line(t.Context()), http.MethodPatch, url)
			if code != want.code || carried.Load() != want.carried {
				t.Errorf("code %d, carried out %d times, want %d and %d", code, carried.Load(), want.code, want.carried)
			}
			if kind != "" && w.Struck()[kind] != 1 {
				t.Errorf("it shows it struck %v", w.Struck())
			}
			if kind == schedule.TooMany && header.Get("Retry-After") == "" {
				t.Error("nothing shows when to try again")
			}
		})
	}
}

func TestWire_DropsWatches(t *testing.T) {
	url, _ := server(t)
	w := wire.New(http.DefaultTransport)
	stream := watch(t, w.Line(t.Context()), url)
	w.DropWatches()
	if _, err := io.ReadAll(stream); err == nil {
		t.Error("the watch has ended in order")
	}
	w.DropWatches()
	if n := w.Struck()[schedule.WatchesDropped]; n != 1 {
		t.Errorf("dropped %d watches, and there was one", n)
	}
}

// TestLine_Cut ends what is under way and lets nothing through, until it is restored.
func TestLine_Cut(t *testing.T) {
	url, carried := server(t)
	line := wire.New(http.DefaultTransport).Line(t.Context())
	stream := watch(t, line, url)
	line.Cut()
	if _, err := io.ReadAll(stream); err == nil {
		t.Error("the watch goes on")
	}
	if code, _ := send(t, line, http.MethodGet, url); code != 0 || carried.Load() != 1 {
		t.Errorf("a request went through a cut line: code %d, %d were carried out", code, carried.Load())
	}
	line.Restore(t.Context())
	if code, _ := send(t, line, http.MethodGet, url); code != http.StatusOK {
		t.Errorf("code %d after the line was restored", code)
	}
}

// TestLine_Hold stops a request where it is, as SIGSTOP does, until it is released.
func TestLine_Hold(t *testing.T) {
	url, carried := server(t)
	line := wire.New(http.DefaultTransport).Line(t.Context())
	line.Hold()
	done := make(chan int, 1)
	go func() {
		code, _ := send(t, line, http.MethodGet, url)
		done <- code
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

func TestLine_HeldWhenAllEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	line := wire.New(http.DefaultTransport).Line(ctx)
	line.Hold()
	cancel()
	if err := line.Pass(); err == nil {
		t.Error("it passed")
	}
}

// TestLine_ReadOnly lets an agent that was killed read, and nothing else.
func TestLine_ReadOnly(t *testing.T) {
	url, carried := server(t)
	line := wire.New(http.DefaultTransport).Line(t.Context())
	line.ReadOnly()
	if code, _ := send(t, line, http.MethodGet, url); code != http.StatusOK {
		t.Errorf("code %d of a read", code)
	}
	if code, _ := send(t, line, http.MethodPatch, url); code != 0 || carried.Load() != 1 {
		t.Errorf("a dead client wrote: code %d, %d were carried out", code, carried.Load())
	}
}
