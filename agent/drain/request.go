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
	"github.com/reboot-operator/reboot-operator/internal/pause"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// requestTimeout bounds one request. The API server itself may work on an eviction for 10 s.
const requestTimeout = 30 * time.Second

// requestGrace is how long a request that is under way goes on after the drain has been asked to end.
const requestGrace = 2 * time.Second

// ask sends the request for one pod and sends on the answer.
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

// outlast is a context for one request, which ends a moment later than the drain's. A request that is cut off may have taken a
// disruption of a PodDisruptionBudget without deleting its pod. The disruption controller gives the disruption back after two
// minutes, and until then other drains wait. Replacing an agent in mid-drain must not cause that.
func (r *run) outlast(ctx context.Context) (request context.Context, over context.CancelFunc) {
	request, over = context.WithCancel(context.WithoutCancel(ctx))
	r.group.Go(func() {
		select {
		case <-request.Done():
			return
		case <-ctx.Done():
		}
		pause.For(request, r.Clock, requestGrace)
		over()
	})
	return request, over
}

// request is an eviction or, where a rule requires it, a deletion of exactly this pod, not of its name. With MaxRetries(0)
// client-go does not sleep on a Retry-After by itself, which the status would not show.
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

// result is the verdict as the metric evictions_total counts it.
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

// answerPatience is how long the drain waits for the answer to a request whose pod is gone already, from when it was sent. The answer
// only counts an eviction, which must not hold up a reboot.
const answerPatience = 2 * time.Second

// requests are those under way, by pod, and since when; their pods may be gone.
type requests map[types.UID]time.Time

func (r requests) has(uid types.UID) bool {
	_, asked := r[uid]
	return asked
}

// patience is when the first of the requests under way is no longer waited for. Zero: none is waited for.
func (r requests) patience(now time.Time) (until time.Time) {
	for _, since := range r {
		if end := since.Add(answerPatience); end.After(now) {
			until = timing.Earliest(until, end)
		}
	}
	return until
}

// verdict is what an answer of the API server means for the pod that was asked for.
type verdict int

const (
	// accepted: the pod goes; the watch will report when it is gone.
	accepted verdict = iota
	// gone: there is no pod of that name and UID. The watch decides: admission for nodes reads a cache of its own,
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
	// failed: the server or the network had a problem that passes, or admission refuses this one pod.
	failed
	// fatal: asking again gives the same answer.
	fatal
)

// answer is the API server's answer to one request.
type answer struct {
	verdict verdict
	// message is for people; "" when accepted.
	message string
	// retryAfter is how long to wait, by the server or what is in front of it. 0: not given. More than lastDelay does not count.
	retryAfter time.Duration
}

// several is the server's wording; there is no cause or reason to go by.
const several = "more than one PodDisruptionBudget"

// refusesOne reports whether a webhook or a ValidatingAdmissionPolicy has refused the request, by whatever code it likes. That is
// about this one pod, and may pass: it is the server's wording again.
func refusesOne(message string) bool {
	return strings.Contains(message, "denied the request") || strings.Contains(message, "denied request")
}

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
	case status.Code == http.StatusNotFound, status.Code == http.StatusConflict:
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

// budgetRefused reports whether the answer is a PodDisruptionBudget's. Its cause shows that. Servers before 1.37 give a 403 no cause,
// so there the object it is about does.
func budgetRefused(err error, status metav1.Status) bool {
	return apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) || status.Code == http.StatusForbidden && status.Details != nil &&
		status.Details.Group == policyv1.GroupName && status.Details.Kind == "poddisruptionbudget"
}

// Back-off between requests for one pod: it doubles from the first to the last.
const (
	firstDelay = time.Second
	lastDelay  = 30 * time.Second
	// mostAttempts is after how many the pause grows no more.
	mostAttempts = 6
)

// backoff is the pause after so many refusals in a row. jitter, in [0, 1), spreads it by a fifth to either side. So pods that were
// refused together are not asked for together.
func backoff(attempts int, jitter float64) time.Duration {
	return time.Duration(float64(timing.Backoff(attempts, firstDelay, lastDelay)) * (0.8 + 0.4*jitter))
}
