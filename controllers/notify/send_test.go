package notify

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// wire stands in for the network, for the services that shoutrrr asks by the default client.
type wire func(*http.Request) error

func (w wire) RoundTrip(q *http.Request) (*http.Response, error) {
	if err := w(q); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: q}, nil
}

// use puts the wire in the place of the network until the test ends. It waits for as long as the test wants.
func (w wire) use(t *testing.T) {
	t.Helper()
	transport, timeout := http.DefaultClient.Transport, http.DefaultClient.Timeout
	http.DefaultClient.Transport, http.DefaultClient.Timeout = w, 0
	t.Cleanup(func() { http.DefaultClient.Transport, http.DefaultClient.Timeout = transport, timeout })
}

// TestSend_OutlivesAPanic: an address on which a service panics costs its own message, and no word of it is told.
func TestSend_OutlivesAPanic(t *testing.T) {
	wire(func(q *http.Request) error { panic("no way to " + q.URL.String()) }).use(t)
	for name, tc := range map[string]struct {
		address string
		want    error
	}{
		"of a custom address that the service cannot convert":    {"teams+https://prod-12.westeurope.logic.azure.com/workflows/s3cr3t", errAddress},
		"of a custom address with an option that cannot be read": {"generic+https://host/s3cr3t?disabletls=maybe", errAddress},
		"while it sends": {"generic://host/s3cr3t", errService},
	} {
		t.Run(name, func(t *testing.T) {
			if err := send(t.Context(), tc.address, "title", "text"); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

// TestSend_LeavesNothingBehind: a service that answers too late keeps nothing running after its answer.
func TestSend_LeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan struct{})
		wire(func(*http.Request) error { <-late; return nil }).use(t)
		err := send(t.Context(), "generic://host/hook", "title", "text")
		if err == nil || !strings.Contains(err.Error(), "no answer within 10s") {
			t.Errorf("got %v, want that nothing came within the time", err)
		}
		close(late) // what is still blocked when the test ends fails it
		synctest.Wait()
	})
}
