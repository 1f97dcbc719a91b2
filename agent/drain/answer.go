package drain

import (
	"errors"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// verdict is what an answer of the API server means for the pod that was asked for.
type verdict int

const (
	// accepted: the pod goes; the watch will report when it is gone.
	accepted verdict = iota
	// gone: there is no pod of that name and UID. The watch has the last word: admission for nodes reads a cache of its own,
	// which may not know the newest pods yet, and answers 404 for them.
	gone
	// refused: a PodDisruptionBudget refuses.
	refused
	// crowded: several PodDisruptionBudgets select the pod, which the eviction API does not support.
	crowded
	// leaving: the pod's namespace is being deleted, and the pod with it.
	leaving
	// denied: 403. That cache again may know the pod, but not yet on which node it is.
	denied
	// failed: the server or the network had a problem that passes.
	failed
	// fatal: asking again gives the same answer.
	fatal
)

// answer is the API server's word on one request.
type answer struct {
	verdict verdict
	// message is for people; "" when accepted.
	message string
	// retryAfter is how long the server wants to be left alone. 0: not given.
	retryAfter time.Duration
}

// several is the server's wording; there is no cause or reason to go by.
const several = "more than one PodDisruptionBudget"

// judge reads the answer out of the error of a request.
func judge(err error) answer {
	if err == nil {
		return answer{verdict: accepted}
	}
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		return answer{verdict: failed, message: err.Error()}
	}
	status := api.Status()
	seconds, _ := apierrors.SuggestsClientDelay(err)
	a := answer{
		verdict:    judgeStatus(status),
		message:    status.Message,
		retryAfter: time.Duration(seconds) * time.Second,
	}
	if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok && cause.Message != "" {
		a.message = cause.Message
	}
	return a
}

func judgeStatus(status metav1.Status) verdict {
	switch {
	case status.Code == http.StatusNotFound, status.Code == http.StatusConflict:
		return gone
	case budgetRefused(status):
		return refused
	case strings.Contains(status.Message, several):
		return crowded
	case status.Code == http.StatusForbidden && hasCause(status, corev1.NamespaceTerminatingCause):
		return leaving
	case status.Code == http.StatusForbidden:
		return denied
	// A 429 without a budget's cause is the server's own overload protection.
	case status.Code == http.StatusTooManyRequests, status.Code == http.StatusRequestTimeout,
		status.Code >= http.StatusInternalServerError:
		return failed
	default:
		return fatal
	}
}

// budgetRefused reports whether the answer is a PodDisruptionBudget's: by its cause, or, for the 403 of servers before 1.37
// that give no cause, by the object it is about.
func budgetRefused(status metav1.Status) bool {
	if hasCause(status, policyv1.DisruptionBudgetCause) {
		return true
	}
	return status.Code == http.StatusForbidden && status.Details != nil &&
		status.Details.Group == policyv1.GroupName && status.Details.Kind == "poddisruptionbudget"
}

func hasCause(status metav1.Status, cause metav1.CauseType) bool {
	if status.Details == nil {
		return false
	}
	for _, c := range status.Details.Causes {
		if c.Type == cause {
			return true
		}
	}
	return false
}

// Back-off between requests for one pod: it doubles from the first to the last.
const (
	firstDelay = time.Second
	lastDelay  = 30 * time.Second
	// mostAttempts is after how many the pause grows no more.
	mostAttempts = 6
)

// backoff is the pause after so many refusals in a row. jitter, in [0, 1), spreads it by a fifth to either side, so that
// pods refused together do not come back together.
func backoff(attempts int, jitter float64) time.Duration {
	return time.Duration(float64(timing.Backoff(attempts, firstDelay, lastDelay)) * (0.8 + 0.4*jitter))
}
