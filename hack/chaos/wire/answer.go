package wire

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// answers are what an API server answers of each kind.
var answers = map[schedule.Kind]*apierrors.StatusError{
	schedule.Conflict:    apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, "", errors.New("the object has been modified")),
	schedule.TooMany:     apierrors.NewTooManyRequests("too many requests, please try again later", 1),
	schedule.ServerError: apierrors.NewInternalError(errors.New("etcdserver: leader changed")),
}

func answer(req *http.Request, kind schedule.Kind) *http.Response {
	status := testenv.Failure(answers[kind].Status())
	resp := testenv.Answer(req, int(status.Code), status)
	if kind == schedule.TooMany {
		resp.Header.Set("Retry-After", "1")
	}
	return resp
}
