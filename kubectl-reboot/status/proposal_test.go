package status_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	. "github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
)

// TestProposal tests that the proposed policy selects the right nodes and reboots none.
func TestProposal(t *testing.T) {
	nodes := func(controlPlanes, workers int) []corev1.Node {
		var list []corev1.Node
		for i := range controlPlanes {
			list = append(list, Node(fmt.Sprintf("cp-%d", i), "", func(n *corev1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" }))
		}
		for i := range workers {
			list = append(list, Node(fmt.Sprintf("worker-%d", i), ""))
		}
		return list
	}
	cases := map[string]struct {
		controlPlanes, workers int
		most                   string
		governed               int
	}{
		"workers and a control plane": {3, 5, "1", 5},
		"many workers":                {3, 40, "5%", 40},
		"a managed control plane":     {0, 5, "1", 5},
		"control-plane nodes only":    {3, 0, "1", 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := nodes(tc.controlPlanes, tc.workers)
			text := status.Of(fleet.New(nil, all, Now)).Proposal
			var policy v1alpha1.RebootPolicy
			if err := yaml.UnmarshalStrict([]byte(text), &policy); err != nil {
				t.Fatalf("%v:\n%s", err, text)
			}
			most := policy.Spec.MaxUnavailableOrDefault()
			if most.String() != tc.most || policy.Spec.Mode != v1alpha1.ModeDryRun || policy.Kind != "RebootPolicy" || policy.APIVersion != v1alpha1.GroupVersion.String() {
				t.Errorf("got:\n%s", text)
			}
			if n := len(fleet.New([]v1alpha1.RebootPolicy{policy}, all, Now).Governed(policy.Name)); n != tc.governed {
				t.Errorf("it governs %d nodes, want %d", n, tc.governed)
			}
		})
	}
	if text := status.Of(fleet.New(nil, nil, Now)).Proposal; text != "" {
		t.Errorf("without nodes it proposes\n%s", text)
	}
	if text := status.Of(fleet.New([]v1alpha1.RebootPolicy{Policy("w")}, nodes(0, 1), Now)).Proposal; text != "" {
		t.Errorf("there is a policy, and it proposes\n%s", text)
	}
}
