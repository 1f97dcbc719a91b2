package faults_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/reboot-operator/reboot-operator/hack/chaos/faults"
	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

// Refused requests must not reach the server. Requests whose answer is lost must.
func TestStrike(t *testing.T) {
	cases := map[schedule.Kind]struct{ code, carried int }{
		"":                   {http.StatusOK, 1},
		schedule.Conflict:    {http.StatusConflict, 0},
		schedule.TooMany:     {http.StatusTooManyRequests, 0},
		schedule.ServerError: {http.StatusInternalServerError, 0},
		schedule.AnswerLost:  {0, 1},
	}
	for kind, want := range cases {
		t.Run(string(kind), func(t *testing.T) {
			f, code, carried := faults.New(), 0, 0
			f.Set(kind, 1)
			server := wire.Func(func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
				carried++
				return wire.Answer(r, http.StatusOK, nil), nil
			}).Wrap(nil)
			response, err := f.Strike(httptest.NewRequestWithContext(t.Context(), http.MethodPatch, "/", http.NoBody), server)
			if err == nil {
				code = response.StatusCode
				response.Body.Close()
			}
			if code != want.code || carried != want.carried {
				t.Errorf("code %d, carried out %d times, want %d and %d", code, carried, want.code, want.carried)
			}
			if kind != "" && f.Struck()[kind] != 1 {
				t.Errorf("it shows it struck %v", f.Struck())
			}
			if kind == schedule.TooMany && response.Header.Get("Retry-After") == "" {
				t.Error("nothing shows when to try again")
			}
		})
	}
}
