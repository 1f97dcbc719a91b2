package protocol_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestUncordons(t *testing.T) {
	const (
		cordon   = `"f:spec":{"f:unschedulable":{}}`
		progress = `"f:metadata":{"f:annotations":{"f:reboot-operator.io/progress":{}}}`
		agent    = v1alpha1.FieldOwnerAgent
		ancient  = "ancient-changes"
	)
	by := func(manager, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Subresource: subresource, Operation: metav1.ManagedFieldsOperationUpdate,
			FieldsV1: metav1.NewFieldsV1("{" + fields + "}"),
		}
	}
	type entries []metav1.ManagedFieldsEntry
	cases := map[string]struct {
		entries entries
		want    bool
	}{
		"the write that cordoned":                                         {entries{by(agent, "", progress+","+cordon)}, true},
		"past the point of no return":                                     {entries{by(agent, "", cordon), by(agent, "status", progress)}, true},
		"an administrator took it over":                                   {entries{by(agent, "", progress), by("kubectl", "", cordon)}, false},
		"an administrator took it over, and the agent's write is ancient": {entries{by(ancient, "", progress), by("kubectl", "", cordon)}, false},
		"an administrator applied it":                                     {entries{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1("{" + cordon + "}")}}, false},
		"the agent's write is ancient":                                    {entries{by(ancient, "", progress+","+cordon), by("kubelet", "status", "")}, true},
		"it is ancient past the point of no return":                       {entries{by(ancient, "", cordon), by(agent, "status", progress)}, true},
		"an administrator took it over long ago":                          {entries{by(ancient, "", cordon), by(agent, "", progress)}, false},
		"an administrator without managedFields took it over":             {entries{by(agent, "", progress)}, false},
		"an API server without managedFields":                             {nil, true},
		"a manager without fields":                                        {entries{{Manager: "kubectl"}}, true},
		"a taint with the cordon's key but without an effect":             {entries{by("kubectl", "", `"f:spec":{"f:taints":{"k:{\"key\":\"node.kubernetes.io/unschedulable\"}":{}}}`)}, true},
		"several managers, and one of them is ancient":                    {entries{by(ancient, "", cordon), by("kubectl", "", cordon)}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			did := protocol.Progress{Seq: 1, Phase: protocol.PhaseRebooting, BootID: "boot", Cordoned: true, At: metav1.Now()}
			didNot := did
			didNot.Cordoned = false
			for progress, want := range map[protocol.Progress]bool{did: tc.want, didNot: false} {
				node := &corev1.Node{
					ObjectMeta: metav1.ObjectMeta{
						ManagedFields: tc.entries, Annotations: map[string]string{v1alpha1.AnnotationProgress: progress.String()},
					},
					Spec: corev1.NodeSpec{Unschedulable: true},
				}
				if got := protocol.Uncordons(node); got != want {
					t.Errorf("the agent cordoned: %t, Uncordons: %t", progress.Cordoned, got)
				}
				node.Spec.Unschedulable = false
				if protocol.Uncordons(node) {
					t.Error("a node that is not cordoned is uncordoned")
				}
			}
		})
	}
}
