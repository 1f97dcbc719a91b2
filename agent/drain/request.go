package drain

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
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
	logr.FromContextOrDiscard(ctx).V(1).Info("Asked a pod to leave", "Pod", klog.KRef(t.Namespace, t.Name),
		"uid", t.uid, "action", t.decision.action, "answer", a.message)
	r.send(ctx, func(p *progress, now time.Time) error {
		if r.Evictions != nil {
			r.Evictions(a.verdict.result(t.decision.action))
		}
		p.took(t, a.verdict)
		return p.answered(t.uid, a, now, rand.Float64())
	})
}

// outlast is a context for one request, which ends a moment later than the drain's. An eviction that is called back may
// have taken its place in a PodDisruptionBudget and not have deleted its pod: the disruption controller gives that place
// back after two minutes, and every other drain waits for it. An agent that is replaced in mid-drain must not cost that.
func (r *run) outlast(ctx context.Context) (request context.Context, over context.CancelFunc) {
	request, over = context.WithCancel(context.WithoutCancel(ctx))
	r.group.Go(func() {
		select {
		case <-request.Done():
			return
		case <-ctx.Done():
		}
		moment, end := context.WithTimeout(request, requestGrace)
		defer end()
		<-moment.Done()
		over()
	})
	return request, over
}

// request is an eviction or, where a rule requires it, a deletion of exactly this pod, not of its name. With MaxRetries(0)
// client-go does not sleep on a Retry-After by itself, where nobody would see it.
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

// answerPatience is how long after it was sent the drain waits for the answer to a request whose pod is gone already: an
// answer is worth being counted, and not worth holding up a reboot.
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
