package nodepatch

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsRefusal reports whether the API server, or a webhook, refused this very write; other writes may succeed. A webhook refuses with any
// code. One that does not answer is an internal error, and may be asked about one Node alone. Outages, NotFound and conflicts do not
// count: a retry may succeed.
func IsRefusal(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	switch {
	case !ok:
		return false
	case strings.Contains(status.ErrStatus.Message, "denied the request"): // by an admission webhook
		return true
	}
	switch code := status.ErrStatus.Code; code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code/100 == 4 || apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
	}
}
