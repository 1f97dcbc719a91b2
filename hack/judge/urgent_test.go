package judge

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// requestsUrgently requests an urgent reboot.
func requestsUrgently(name string) func(*story) {
	return requestedFor(name, v1alpha1.UrgentPrefix+" CVE")
}

// withdraws removes a request.
func withdraws(name string) func(*story) {
	return func(s *story) {
		s.node(name, Admin, func(n *corev1.Node) { delete(n.Annotations, v1alpha1.AnnotationRebootRequested) })
	}
}

// TestTake_Urgent tests that spec.urgent and urgent requests bypass only what they list.
func TestTake_Urgent(t *testing.T) {
	until := metav1.NewTime(began.Add(time.Hour))
	urgent := func(ignore ...v1alpha1.UrgentIgnore) func(*story) {
		return spec(func(s *v1alpha1.RebootPolicySpec) {
			s.Urgent = &v1alpha1.Urgent{All: &v1alpha1.UrgentPeriod{Until: until, Reason: "CVE", Ignore: ignore}}
		})
	}
	allows := func(ignore ...v1alpha1.UrgentIgnore) func(*story) {
		return spec(func(s *v1alpha1.RebootPolicySpec) {
			s.Urgent = &v1alpha1.Urgent{Requested: &v1alpha1.UrgentNodes{Ignore: ignore}}
		})
	}
	closed, frozen := window("12:00", time.Hour, "UTC"), blackout("2000-03-26", "2000-03-27")
	paused := spec(func(s *v1alpha1.RebootPolicySpec) { s.Pause = &v1alpha1.Pause{} })
	dryRun := spec(func(s *v1alpha1.RebootPolicySpec) { s.Mode = v1alpha1.ModeDryRun })
	const windows, blackouts, pause = v1alpha1.UrgentIgnoresWindows, v1alpha1.UrgentIgnoresBlackouts, v1alpha1.UrgentIgnoresPause
	allow, a := allows(windows, blackouts), grant("a", 1)
	both := all(grant("a", 1), grant("b", 2), drains("a", 1), drains("b", 2))
	histories{
		"outside the windows":                            {[]func(*story){closed, urgent(windows), a}, nil},
		"outside the windows, not ignored":               {[]func(*story){closed, urgent(blackouts, pause), a}, []Rule{Window}},
		"in a blackout":                                  {[]func(*story){frozen, urgent(blackouts), a}, nil},
		"in a blackout, not ignored":                     {[]func(*story){frozen, urgent(windows, pause), a}, []Rule{Window}},
		"in a blackout outside the windows":              {[]func(*story){closed, frozen, urgent(windows, blackouts), a}, nil},
		"in a blackout outside the windows, not ignored": {[]func(*story){closed, frozen, urgent(blackouts), a}, []Rule{Window}},
		"in a pause":                                     {[]func(*story){paused, urgent(pause), a}, nil},
		"in a pause, not ignored":                        {[]func(*story){paused, urgent(windows, blackouts), a}, []Rule{Window}},
		"after its end, outside the windows":             {[]func(*story){closed, urgent(windows), passes(time.Hour), a}, []Rule{Window}},
		"after its end, in a blackout":                   {[]func(*story){frozen, urgent(blackouts), passes(time.Hour), a}, []Rule{Window}},
		"after its end, in a pause":                      {[]func(*story){paused, urgent(pause), passes(time.Hour), a}, []Rule{Window}},
		"decided before its end":                         {[]func(*story){closed, urgent(windows), passes(time.Hour), grantAfter(time.Minute, "a", 1)}, nil},
		"in mode DryRun":                                 {[]func(*story){dryRun, urgent(windows, blackouts, pause), a}, []Rule{Window}},
		"of a policy that is being deleted":              {[]func(*story){urgent(windows, blackouts, pause), policyDeleting, a}, []Rule{Window}},
		"over the limit":                                 {[]func(*story){urgent(windows, blackouts, pause), both}, []Rule{Unavailable, Limit}},

		"a request, outside the windows in a blackout":        {[]func(*story){closed, frozen, allow, requestsUrgently("a"), a}, nil},
		"a request that ignores windows alone, in a blackout": {[]func(*story){frozen, allows(windows), requestsUrgently("a"), a}, []Rule{Window}},
		"a request that ignores windows alone, outside them":  {[]func(*story){closed, allows(windows), requestsUrgently("a"), a}, nil},
		"a request under a policy without the field":          {[]func(*story){closed, requestsUrgently("a"), a}, []Rule{Window}},
		"a request that is not urgent":                        {[]func(*story){closed, allow, asksFor("a"), a}, []Rule{Window}},
		"the request of another node":                         {[]func(*story){closed, allow, requestsUrgently("b"), a}, []Rule{Window}},
		"a request in a pause":                                {[]func(*story){paused, allow, requestsUrgently("a"), a}, []Rule{Window}},
		"a request that was withdrawn a moment ago":           {[]func(*story){closed, allow, requestsUrgently("a"), withdraws("a"), a}, nil},
		"a request that was withdrawn long ago":               {[]func(*story){closed, allow, requestsUrgently("a"), withdraws("a"), passes(2 * Slack), a}, []Rule{Window}},
		"a withdrawn request that was never urgent":           {[]func(*story){closed, allow, asksFor("a"), withdraws("a"), a}, []Rule{Window}},
		"two requests, over the limit":                        {[]func(*story){allow, requestsUrgently("a"), requestsUrgently("b"), both}, []Rule{Unavailable, Limit}},
	}.check(t)
}
