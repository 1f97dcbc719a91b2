package drain

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// requestTimeout is the time-out of one request. The API server itself may take 10 s for an
// eviction.
const requestTimeout = 30 * time.Second

// requestGrace is the time that a request under way gets to finish after the drain was stopped.
const requestGrace = 2 * time.Second

// ask sends the request for one pod and passes on the response.
func (r *run) ask(ctx context.Context, t target) {
	request, over := r.outlast(ctx)
	err := r.request(t).Timeout(requestTimeout).MaxRetries(0).Do(request).Error()
	over()
	if ctx.Err() != nil {
		return
	}
	a := judge(err)
	logr.FromContextOrDiscard(ctx).V(4).Info("Asked a pod to leave", "Pod", klog.KRef(t.Namespace, t.Name),
		"uid", t.uid, "action", t.decision.action, "answer", a.message)
	r.send(ctx, func(p *progress, now time.Time) error {
		if r.Evictions != nil {
			r.Evictions(a.verdict.result(t.decision.action))
		}
		p.took(t, a.verdict)
		return p.answered(t.uid, a, now, rand.Float64())
	})
}

// outlast returns a context for one request that ends a moment after the drain's. A request that is
// cut off may have used up a disruption of a PodDisruptionBudget without deleting its pod. The
// disruption controller restores it only after two minutes, and other drains wait until then.
// Replacing an agent during a drain must not cause that.
func (r *run) outlast(ctx context.Context) (request context.Context, over context.CancelFunc) {
	request, over = context.WithCancel(context.WithoutCancel(ctx))
	r.group.Go(func() {
		select {
		case <-request.Done():
			return
		case <-ctx.Done():
		}
		lifecycle.Pause(request, r.Clock, requestGrace)
		over()
	})
	return request, over
}

// request returns the eviction, or if a rule requires it the deletion, of the pod with this UID.
// With MaxRetries(0) client-go does not sleep on a Retry-After, which the status would not show.
func (r *run) request(t target) *rest.Request {
	options := &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(t.uid))}
	if t.decision.gracePeriod > 0 {
		options.GracePeriodSeconds = &t.decision.gracePeriod
	}
	pods := r.Pods.core
	if t.decision.action == v1alpha1.DrainDelete {
		return pods.Delete().Namespace(t.Namespace).Resource("pods").Name(t.Name).Body(options)
	}
	return pods.Post().Namespace(t.Namespace).Resource("pods").Name(t.Name).SubResource("eviction").
		Body(&policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name},
			DeleteOptions: options,
		})
}

// result returns the verdict as the metric evictions_total counts it.
func (v verdict) result(action v1alpha1.DrainAction) string {
	switch v {
	case accepted:
		if action == v1alpha1.DrainDelete {
			return "deleted"
		}
		return "evicted"
	case refused, crowded, leaving:
		return "blocked"
	case gone:
		return "gone"
	case denied, failed, fatal:
		return "error"
	}
	return "error"
}

// answerPatience is the time, from its start, that the drain waits for a request whose pod has
// already left. The response only counts the eviction, which must not delay a reboot.
const answerPatience = 2 * time.Second

// requests holds the start times of the requests under way, by pod. The pods may have left.
type requests map[types.UID]time.Time

func (r requests) has(uid types.UID) bool {
	_, asked := r[uid]
	return asked
}

// patience returns the first time at which the drain stops to wait for one of the requests, or zero
// without requests to wait for.
func (r requests) patience(now time.Time) (until time.Time) {
	for _, since := range r {
		if end := since.Add(answerPatience); end.After(now) {
			until = timing.Earliest(until, end)
		}
	}
	return until
}

// verdict classifies a response of the API server to the request for a pod.
type verdict int

const (
	// accepted means that the pod is leaving. The watch reports when it has left.
	accepted verdict = iota
	// gone means that the pod does not exist with that name and UID. The watch decides, because
	// admission for nodes uses its own cache, which may not have the newest pods and then returns
	// 404 for them.
	gone
	// refused means that a PodDisruptionBudget refuses.
	refused
	// crowded means that several PodDisruptionBudgets select the pod, which the eviction API does
	// not support.
	crowded
	// leaving means that the namespace of the pod is being deleted, and the pod with it.
	leaving
	// denied means 403. The same cache may have the pod, but not yet the node that it is on.
	denied
	// failed means a temporary problem of the server or the network, or that admission refuses this
	// pod.
	failed
	// fatal means that the same request would fail again.
	fatal
)

// answer is the API server's answer to one request.
type answer struct {
	verdict verdict
	// message is text for people. It is empty for accepted.
	message string
	// retryAfter is the pause that the server, or a proxy before it, requires, or 0. It is ignored
	// if it exceeds lastDelay.
	retryAfter time.Duration
}

// several is part of the server's message. The response has no cause or reason that identifies this
// case.
const several = "more than one PodDisruptionBudget"

// refusesOne reports whether a webhook or a ValidatingAdmissionPolicy refused the request, with any
// code. Such a refusal applies only to this pod and may be temporary. It is recognized by the
// server's message.
func refusesOne(message string) bool {
	return strings.Contains(message, "denied the request") || strings.Contains(message, "denied request")
}

// judge classifies the error of a request.
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
		verdict:    judgeStatus(err, status),
		message:    status.Message,
		retryAfter: time.Duration(seconds) * time.Second,
	}
	if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok && cause.Message != "" {
		a.message = cause.Message
	}
	return a
}

func judgeStatus(err error, status metav1.Status) verdict {
	switch {
	case (status.Code == http.StatusNotFound || status.Code == http.StatusConflict) && !refusesOne(status.Message):
		return gone
	case budgetRefused(err, status):
		return refused
	case strings.Contains(status.Message, several):
		return crowded
	case refusesOne(status.Message):
		return failed
	case status.Code == http.StatusForbidden && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
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

// budgetRefused reports whether a PodDisruptionBudget refused, which the cause shows. Servers
// before 1.37 do not add a cause to a 403, so there the object in the details shows it.
func budgetRefused(err error, status metav1.Status) bool {
	return apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) || status.Code == http.StatusForbidden && status.Details != nil &&
		status.Details.Group == policyv1.GroupName && status.Details.Kind == "poddisruptionbudget"
}

// Back-off between requests for one pod. It doubles from firstDelay to lastDelay.
const (
	firstDelay = time.Second
	lastDelay  = 30 * time.Second
	// mostAttempts is the number of attempts after which the pause stops growing.
	mostAttempts = 6
)

// backoff returns the pause after a number of refusals in a row. jitter, in [0, 1), spreads it by a
// fifth to either side, so that pods that were refused together are not requested together again.
func backoff(attempts int, jitter float64) time.Duration {
	return time.Duration(float64(timing.Backoff(attempts, firstDelay, lastDelay)) * (0.8 + 0.4*jitter))
}
