package lifecycle

import (
	"fmt"
	"net/http"
	"strconv"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

// mostRetryAfter is for how many seconds client-go sleeps at most because an answer asks for it.
const mostRetryAfter = 30

// Config is for the API server that flags, environment or the pod name. No answer puts a client to sleep for longer than half a minute.
func Config() (*rest.Config, error) {
	found, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	found.Wrap(func(next http.RoundTripper) http.RoundTripper { return impatient{next} })
	return found, nil
}

// impatient lets no Retry-After be longer than mostRetryAfter. A load balancer in front of an API server that is away may ask for hours,
// and client-go sleeps on it in watches, too.
type impatient struct{ http.RoundTripper }

// RoundTrip is http.RoundTripper's.
func (i impatient) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := i.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > mostRetryAfter {
		response.Header.Set("Retry-After", strconv.Itoa(mostRetryAfter))
	}
	return response, nil
}
