package fleet

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// The managers of a cluster of one node are drained with it, and nobody else could put it back in service. Their
// PodDisruptionBudget keeps one of them there: the drain is given up, or the reboot goes on with it.
func TestSingleNode_IsPutBackInServiceByTheManagerOnIt_Behaviour29(t *testing.T) {
	f := start(t, Options{Nodes: 1, Workload: []byte(`{apiVersion: v1, kind: Namespace, metadata: {name: empty}}`)})
	policy, err := f.ApplyPolicy(t.Context(), func(spec *v1alpha1.RebootPolicySpec) {
		spec.Settle = &metav1.Duration{}
		spec.Drain = &v1alpha1.Drain{Timeout: &metav1.Duration{Duration: 3 * time.Second}, OnTimeout: v1alpha1.DrainTimeoutReboot}
	})
	must(t, err)
	must(t, f.Stage())
	must(t, f.Await(t.Context(), "the node to be back", func() bool { return policy.Finished(t.Context()) }))
	for _, v := range f.views() {
		if v.Reboots != 1 || v.Cordoned {
			t.Errorf("%s was rebooted %d times, cordoned: %t", v.Node, v.Reboots, v.Cordoned)
		}
	}
	checkWeight(t, f)
}
