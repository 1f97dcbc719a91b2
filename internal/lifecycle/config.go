package lifecycle

import (
	"fmt"
	"net/http"
	"strconv"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

// mostRetryAfter is the most seconds that client-go sleeps because of a header Retry-After.
const mostRetryAfter = 30

// Config returns the configuration for the API server from flags, the environment or the pod. No
// response makes its clients sleep for more than half a minute.
func Config() (*rest.Config, error) {
	found, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	found.Wrap(func(next http.RoundTripper) http.RoundTripper { return impatient{next} })
	return found, nil
}

// impatient limits Retry-After to mostRetryAfter. A load balancer in front of an API server that is
// down may send hours, and client-go sleeps that long, in watches too.
type impatient struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
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
