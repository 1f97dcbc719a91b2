package agentset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// policy returns a policy that selects nodes. A nil selector selects all.
func policy(name string, selector *v1alpha1.LabelSelector) v1alpha1.RebootPolicy {
	return v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RebootPolicySpec{NodeSelector: selector}}
}

func matching(key, value string) *v1alpha1.LabelSelector {
	return &v1alpha1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func expressions(of ...v1alpha1.LabelSelectorRequirement) *v1alpha1.LabelSelector {
	return &v1alpha1.LabelSelector{MatchExpressions: of}
}

func term(of ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: of}
}

func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func named(node string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{in("metadata.name", node)}}
}

// node returns a node with label pool and the annotations of its record.
func node(name, pool string, annotations map[string]string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"pool": pool}, Annotations: annotations,
	}}
}

func annotations(state protocol.GrantState, phase protocol.Phase) map[string]string {
	annotations := map[string]string{
		v1alpha1.AnnotationGrant: protocol.Grant{Policy: "p", Seq: 1, BootID: "b", State: state, At: metav1.Now()}.String(),
	}
	if phase != "" {
		annotations[v1alpha1.AnnotationProgress] = protocol.Progress{Seq: 1, Phase: phase, BootID: "b", At: metav1.Now()}.String()
	}
	return annotations
}

func TestPlacement(t *testing.T) {
	deleting := policy("going", matching("pool", "a"))
	deleting.DeletionTimestamp = &metav1.Time{}
	broken := expressions(v1alpha1.LabelSelectorRequirement{Key: "pool", Operator: "Near"})
	for name, tc := range map[string]struct {
		policies   []v1alpha1.RebootPolicy
		nodes      []corev1.Node
		want       placement
		unreadable []string
	}{
		"no policy: nowhere": {},
		"a policy without a selector: everywhere": {
			policies: []v1alpha1.RebootPolicy{policy("a", nil)},
			want:     placement{Everywhere: true},
		},
		"one policy that selects everything makes the others irrelevant": {
			policies: []v1alpha1.RebootPolicy{policy("a", matching("pool", "a")), policy("b", &v1alpha1.LabelSelector{}), policy("c", broken)},
			nodes:    []corev1.Node{node("n1", "z", annotations(protocol.GrantActive, protocol.PhaseDraining))},
			want:     placement{Everywhere: true},
		},
		"labels and every operator, by key, and values in order": {
			policies: []v1alpha1.RebootPolicy{policy("a", &v1alpha1.LabelSelector{
				MatchLabels: map[string]string{"z": "1", "a": ""},
				MatchExpressions: []v1alpha1.LabelSelectorRequirement{
					{Key: "k", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"y", "x", "y"}},
					{Key: "k", Operator: metav1.LabelSelectorOpIn, Values: []string{"w"}},
					{Key: "e", Operator: metav1.LabelSelectorOpExists},
					{Key: "d", Operator: metav1.LabelSelectorOpDoesNotExist},
				},
			})},
			want: placement{Terms: []corev1.NodeSelectorTerm{term(
				in("a", ""),
				corev1.NodeSelectorRequirement{Key: "d", Operator: corev1.NodeSelectorOpDoesNotExist},
				corev1.NodeSelectorRequirement{Key: "e", Operator: corev1.NodeSelectorOpExists},
				in("k", "w"),
				corev1.NodeSelectorRequirement{Key: "k", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"x", "y"}},
				in("z", "1"),
			)}},
		},
		"several policies: one term for each, in a fixed order, without duplicates": {
			policies: []v1alpha1.RebootPolicy{
				policy("3", matching("pool", "b")),
				policy("2", expressions(v1alpha1.LabelSelectorRequirement{Key: "pool", Operator: metav1.LabelSelectorOpIn, Values: []string{"a"}})),
				policy("1", &v1alpha1.LabelSelector{
					MatchLabels:      map[string]string{"pool": "a"},
					MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: "pool", Operator: metav1.LabelSelectorOpIn, Values: []string{"a"}}},
				}),
			},
			want: placement{Terms: []corev1.NodeSelectorTerm{term(in("pool", "a")), term(in("pool", "b"))}},
		},
		"a policy that is being deleted counts until it is gone, because of its grants": {
			policies: []v1alpha1.RebootPolicy{deleting},
			want:     placement{Terms: []corev1.NodeSelectorTerm{term(in("pool", "a"))}},
		},
		"a selector that cannot be read is named": {
			policies:   []v1alpha1.RebootPolicy{policy("c", broken), policy("b", broken), policy("a", matching("pool", "a"))},
			want:       placement{Terms: []corev1.NodeSelectorTerm{term(in("pool", "a"))}},
			unreadable: []string{"b", "c"},
		},
		"a node that no policy selects any more keeps its agent until its attempt is over (behaviour 64)": {
			policies: []v1alpha1.RebootPolicy{policy("a", matching("pool", "a"))},
			nodes: []corev1.Node{
				node("inside", "a", annotations(protocol.GrantActive, protocol.PhaseDraining)),
				node("waiting", "z", nil),
				node("granted", "z", annotations(protocol.GrantActive, "")),
				node("draining", "z", annotations(protocol.GrantActive, protocol.PhaseDraining)),
				node("rebooting", "z", annotations(protocol.GrantActive, protocol.PhaseRebooting)),
				node("aborting", "z", annotations(protocol.GrantCancelled, protocol.PhaseDraining)),
				node("aborted", "z", annotations(protocol.GrantCancelled, protocol.PhaseAborted)),
				node("withdrawn", "z", annotations(protocol.GrantCancelled, "")),
				node("done", "z", annotations(protocol.GrantFinished, protocol.PhaseRebooting)),
				node("garbled", "z", map[string]string{v1alpha1.AnnotationProgress: "{"}),
			},
			want: placement{Terms: []corev1.NodeSelectorTerm{
				named("aborting"), named("draining"), named("garbled"), named("granted"), named("rebooting"), term(in("pool", "a")),
			}},
		},
		"an attempt whose policy was removed by force keeps its agent": {
			nodes: []corev1.Node{node("n1", "a", annotations(protocol.GrantActive, protocol.PhaseDraining)), node("n2", "a", nil)},
			want:  placement{Terms: []corev1.NodeSelectorTerm{named("n1")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, unreadable := assign(tc.policies, tc.nodes)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("placement (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.unreadable, unreadable); diff != "" {
				t.Errorf("unreadable (-want +got):\n%s", diff)
			}
		})
	}
}
