package nodepatch

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsRefusal reports whether the API server or a webhook refused or undid this particular write, while
// other writes may succeed. A webhook may refuse with any code. A webhook that does not answer is an
// internal error, which may affect only one Node. Outages, NotFound and conflicts do not count,
// because a retry may succeed.
func IsRefusal(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	switch {
	case IsUndone(err):
		return true
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
