package drain

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func withCause(err *apierrors.StatusError, cause metav1.CauseType, message string) error {
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: cause, Message: message})
	return err
}

func TestJudge(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	budgets := schema.GroupResource{Group: "policy", Resource: "poddisruptionbudget"}
	const violates = "Cannot evict pod as it would violate the pod's disruption budget."
	const needs = "The disruption budget web needs 3 healthy pods and has 3 currently"

	cases := map[string]struct {
		err  error
		want answer
	}{
		"no error": {want: answer{verdict: accepted}},
		"404": {
			err:  apierrors.NewNotFound(pods, "web"),
			want: answer{verdict: gone, message: `pods "web" not found`},
		},
		"409": {
			err:  apierrors.NewConflict(pods, "web", errors.New("another UID")),
			want: answer{verdict: gone, message: `Operation cannot be fulfilled on pods "web": another UID`},
		},
		"429 of a budget has the server's text": {
			err:  withCause(apierrors.NewTooManyRequests(violates, 0), policyv1.DisruptionBudgetCause, needs),
			want: answer{verdict: refused, message: needs},
		},
		"429 of a budget that lags has the time to wait": {
			err:  withCause(apierrors.NewTooManyRequests(violates, 10), policyv1.DisruptionBudgetCause, "still being processed"),
			want: answer{verdict: refused, message: "still being processed", retryAfter: 10 * time.Second},
		},
		"429 of an overloaded server is not a budget's": {
			err:  apierrors.NewTooManyRequests("too many requests", 1),
			want: answer{verdict: failed, message: "too many requests", retryAfter: time.Second},
		},
		"403 with a budget's cause": {
			err:  withCause(apierrors.NewForbidden(budgets, "web", errors.New("negative")), policyv1.DisruptionBudgetCause, needs),
			want: answer{verdict: refused, message: needs},
		},
		"403 about a budget, before 1.37": {
			err:  apierrors.NewForbidden(budgets, "web", errors.New("negative")),
			want: answer{verdict: refused, message: `poddisruptionbudget.policy "web" is forbidden: negative`},
		},
		"several budgets": {
			err:  &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "This pod has more than one PodDisruptionBudget, …"}},
			want: answer{verdict: crowded, message: "This pod has more than one PodDisruptionBudget, …"},
		},
		"403 because the namespace is being deleted": {
			err:  withCause(apierrors.NewForbidden(pods, "web", errors.New("going")), corev1.NamespaceTerminatingCause, ""),
			want: answer{verdict: leaving, message: `pods "web" is forbidden: going`},
		},
		"403 of a webhook is about one pod": {
			err:  &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: "Forbidden", Message: `admission webhook "db.example.com" denied the request: the primary is to move first`}},
			want: answer{verdict: failed, message: `admission webhook "db.example.com" denied the request: the primary is to move first`},
		},
		"400 of a webhook without a code is about one pod, too": {
			err:  &apierrors.StatusError{ErrStatus: metav1.Status{Code: 400, Message: `admission webhook "db.example.com" denied the request without explanation`}},
			want: answer{verdict: failed, message: `admission webhook "db.example.com" denied the request without explanation`},
		},
		"422 of an admission policy, too": {
			err: &apierrors.StatusError{ErrStatus: metav1.Status{
				Code: 422, Reason: "Invalid", Message: `pods "web" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'keep' denied request: not now`,
			}},
			want: answer{verdict: failed, message: `pods "web" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'keep' denied request: not now`},
		},
		"409 of a webhook does not mean that the pod is gone": {
			err:  &apierrors.StatusError{ErrStatus: metav1.Status{Code: 409, Message: `admission webhook "db.example.com" denied the request: the primary moves`}},
			want: answer{verdict: failed, message: `admission webhook "db.example.com" denied the request: the primary moves`},
		},
		"404 of an admission policy, neither": {
			err:  &apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Message: `ValidatingAdmissionPolicy 'keep' denied request: not now`}},
			want: answer{verdict: failed, message: `ValidatingAdmissionPolicy 'keep' denied request: not now`},
		},
		"403 otherwise": {
			err:  apierrors.NewForbidden(pods, "web", errors.New("no")),
			want: answer{verdict: denied, message: `pods "web" is forbidden: no`},
		},
		"500": {
			err:  apierrors.NewInternalError(errors.New("etcd")),
			want: answer{verdict: failed, message: "Internal error occurred: etcd"},
		},
		"504": {
			err:  apierrors.NewTimeoutError("slow", 10),
			want: answer{verdict: failed, message: "Timeout: slow", retryAfter: 10 * time.Second},
		},
		"a network error": {
			err:  fmt.Errorf("posting: %w", errors.New("connection refused")),
			want: answer{verdict: failed, message: "posting: connection refused"},
		},
		"a wrapped answer": {
			err:  fmt.Errorf("listing: %w", apierrors.NewNotFound(pods, "web")),
			want: answer{verdict: gone, message: `pods "web" not found`},
		},
		"401": {
			err:  apierrors.NewUnauthorized("who are you"),
			want: answer{verdict: fatal, message: "who are you"},
		},
		"422": {
			err:  apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "post", pods, "web", "bad", 0, false),
			want: answer{verdict: fatal, message: "the server rejected our request due to an error in our request (post pods web)"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, judge(tc.err), cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("judge (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	for attempts, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 6: 30 * time.Second, 1000: 30 * time.Second,
	} {
		if got := backoff(attempts, 0.5); got != want {
			t.Errorf("backoff(%d, 0.5) = %s, want %s", attempts, got, want)
		}
		low, high := backoff(attempts, 0), backoff(attempts, 0.999)
		if low < want*79/100 || high > want*121/100 || low >= high {
			t.Errorf("backoff(%d) is between %s and %s, want a fifth around %s", attempts, low, high, want)
		}
	}
}

func TestResult(t *testing.T) {
	type key struct {
		verdict verdict
		action  v1alpha1.DrainAction
	}
	for k, want := range map[key]string{
		{accepted, v1alpha1.DrainEvict}:  "evicted",
		{accepted, v1alpha1.DrainDelete}: "deleted",
		{gone, v1alpha1.DrainEvict}:      "gone",
		{refused, v1alpha1.DrainEvict}:   "blocked",
		{crowded, v1alpha1.DrainEvict}:   "blocked",
		{leaving, v1alpha1.DrainEvict}:   "blocked",
		{denied, v1alpha1.DrainEvict}:    "error",
		{failed, v1alpha1.DrainDelete}:   "error",
		{fatal, v1alpha1.DrainEvict}:     "error",
		{verdict(-1), ""}:                "error",
	} {
		if got := k.verdict.result(k.action); got != want {
			t.Errorf("verdict %d of %s counts as %q, want %q", k.verdict, k.action, got, want)
		}
	}
}
