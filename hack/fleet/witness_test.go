package fleet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/judge/feed"
)

// witness has every revision of every Node and policy since it was made.
type witness struct {
	fleet *Fleet
	api   client.WithWatch
	feed  *feed.Feed
}

func newWitness(t *testing.T, f *Fleet) *witness {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, corev1.AddToScheme(scheme))
	must(t, v1alpha1.AddToScheme(scheme))
	api, err := client.NewWithWatch(f.Cluster.Config(), client.Options{Scheme: scheme})
	must(t, err)
	seen, err := feed.Watch(t.Context(), api, feed.Kind{List: &corev1.NodeList{}}, feed.Kind{List: &v1alpha1.RebootPolicyList{}})
	must(t, err)
	return &witness{fleet: f, api: api, feed: seen}
}

// check fails where the judge finds anything, and where no attempt was seen.
func (w *witness) check(t *testing.T) {
	t.Helper()
	var nodes corev1.NodeList
	var policies v1alpha1.RebootPolicyList
	must(t, w.api.List(t.Context(), &nodes))
	must(t, w.api.List(t.Context(), &policies))
	var present []client.Object
	for i := range nodes.Items {
		present = append(present, &nodes.Items[i])
	}
	for i := range policies.Items {
		present = append(present, &policies.Items[i])
	}
	var history []judge.Change
	var failed error
	must(t, w.fleet.Await(t.Context(), "the witness to see the present", func() bool {
		history, failed = w.feed.History(present...)
		return history != nil || failed != nil
	}))
	must(t, failed)
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
