package fleet

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/judge/feed"
)

// newWitness has every revision of every Node and policy since it was made.
func newWitness(t *testing.T, f *Fleet) *feed.Feed {
	t.Helper()
	seen, err := feed.Watch(t.Context(), f.Client, feed.Kind{List: &corev1.NodeList{}}, feed.Kind{List: &v1alpha1.RebootPolicyList{}})
	must(t, err)
	return seen
}

// check fails where the judge finds anything, and where no attempt was seen.
func check(t *testing.T, seen *feed.Feed) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	history, err := seen.Await(ctx)
	must(t, err)
	j := judge.New(judge.Options{TrueClocks: true})
	attempts := 0
	for _, r := range history {
		j.Take(r)
		if r.Node != nil && r.Node.Annotations[v1alpha1.AnnotationProgress] != "" {
			attempts++
		}
	}
	for _, v := range j.Violations() {
		t.Error(v)
	}
	if attempts == 0 {
		t.Error("the witness has seen no attempt")
	}
}
