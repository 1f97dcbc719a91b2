package agentset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/config/agent"
)

var template = Template{Manifest: agent.Manifest(), Namespace: "elsewhere", Image: "registry/agent:2"}

// typed returns a configuration as the API server would read it.
func typed(t *testing.T, configuration *appsv1ac.DaemonSetApplyConfiguration) *appsv1.DaemonSet {
	t.Helper()
	text, err := yaml.Marshal(configuration)
	if err != nil {
		t.Fatal(err)
	}
	set := &appsv1.DaemonSet{}
	if err := yaml.UnmarshalStrict(text, set); err != nil {
		t.Fatal(err)
	}
	return set
}

var everything = []v1alpha1.RebootPolicy{policy("all", nil)}

var matchA, matchB = in("pool", "a"), in("pool", "b")

func TestNext(t *testing.T) {
	poolA := []v1alpha1.RebootPolicy{policy("a", matching("pool", "a"))}
	broken := policy("broken", expressions(v1alpha1.LabelSelectorRequirement{Key: "pool", Operator: metav1.LabelSelectorOpIn}))
	// made returns the DaemonSet as the manager creates it for some policies.
	made := func(policies []v1alpha1.RebootPolicy) *appsv1.DaemonSet {
		p, _ := assign(policies, nil)
		set, err := template.daemonSet(p)
		if err != nil {
			t.Fatal(err)
		}
		return typed(t, set)
	}
	byHand := made(everything)
	delete(byHand.Labels, managedBy)
	byAnother := made(everything)
	byAnother.Labels[managedBy] = "Helm"
	terminating := made(poolA)
	terminating.DeletionTimestamp = &metav1.Time{}
	const leftAlone = "DaemonSet elsewhere/reboot-operator-agent was not made by the manager and is not changed: delete it, or hand it over " +
		"with `kubectl label daemonset -n elsewhere reboot-operator-agent app.kubernetes.io/managed-by=reboot-operator-manager --overwrite`; " +
		"or run the manager without --manage-agents"
	type want struct {
		Nodes   *placement // nil if the DaemonSet is not written
		Delete  bool
		Foreign string
		Held    []string
	}
	in := func(terms ...corev1.NodeSelectorTerm) *placement { return &placement{Terms: terms} }
	for name, tc := range map[string]struct {
		given Observation
		want  want
	}{
		"no policy, no DaemonSet: nothing":       {Observation{}, want{}},
		"the first policy creates the DaemonSet": {Observation{Policies: poolA}, want{Nodes: in(term(matchA))}},
		"a policy that selects all nodes": {
			Observation{Policies: everything, DaemonSet: made(poolA)}, want{Nodes: &placement{Everywhere: true}},
		},
		"the last policy removes the DaemonSet": {Observation{DaemonSet: made(poolA)}, want{Delete: true}},
		"the last policy leaves the DaemonSet to an attempt that outlives it": {
			Observation{DaemonSet: made(poolA), Nodes: []corev1.Node{node("n1", "a", annotations(protocol.GrantActive, protocol.PhaseDraining))}},
			want{Nodes: in(named("n1"))},
		},
		"a DaemonSet that is being deleted is waited for":   {Observation{Policies: poolA, DaemonSet: terminating}, want{}},
		"a DaemonSet made by hand is left alone":            {Observation{Policies: poolA, DaemonSet: byHand}, want{Foreign: leftAlone}},
		"a DaemonSet made by another program is left alone": {Observation{Policies: poolA, DaemonSet: byAnother}, want{Foreign: leftAlone}},
		"a DaemonSet made by hand is left alone although a selector cannot be read": {
			Observation{Policies: []v1alpha1.RebootPolicy{broken}, DaemonSet: byHand},
			want{Foreign: leftAlone, Held: []string{"broken"}},
		},
		"a DaemonSet made by hand is not reported while no policy needs agents": {Observation{DaemonSet: byHand}, want{}},
		"a selector that cannot be read removes no agent": {
			Observation{Policies: []v1alpha1.RebootPolicy{broken, policy("b", matching("pool", "b"))}, DaemonSet: made(poolA)},
			want{Nodes: in(term(matchA), term(matchB)), Held: []string{"broken"}},
		},
		"the only selector removes no agent if it cannot be read": {
			Observation{Policies: []v1alpha1.RebootPolicy{broken}, DaemonSet: made(poolA)},
			want{Nodes: in(term(matchA)), Held: []string{"broken"}},
		},
		"a selector that cannot be read removes no agent if agents ran everywhere": {
			Observation{Policies: []v1alpha1.RebootPolicy{broken, poolA[0]}, DaemonSet: made(everything)},
			want{Nodes: &placement{Everywhere: true}, Held: []string{"broken"}},
		},
		"a selector that cannot be read creates no DaemonSet": {Observation{Policies: []v1alpha1.RebootPolicy{broken}}, want{Held: []string{"broken"}}},
	} {
		t.Run(name, func(t *testing.T) {
			step, err := template.Next(tc.given)
			if err != nil {
				t.Fatal(err)
			}
			got := want{Delete: step.Delete, Foreign: step.Foreign, Held: step.Held}
			if step.Apply != nil {
				p := placementOf(typed(t, step.Apply))
				got.Nodes = &p
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDaemonSetIsTheManifestButForImageNodesAndOwner(t *testing.T) {
	manifest := &appsv1.DaemonSet{}
	if err := yaml.UnmarshalStrict([]byte(agent.Manifest()), manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Spec.Template.Spec.Affinity != nil {
		t.Error("config/agent has an affinity, which the policies' selectors would replace: use nodeSelector")
	}
	if got := manifest.Spec.Template.Spec.NodeSelector; got[corev1.LabelOSStable] != "linux" {
		t.Errorf("nodeSelector is %v: agents would run on other systems", got)
	}
	template := template
	template.Args = []string{"--engines=sentinel", "--identity=serviceaccount"}
	terms := []corev1.NodeSelectorTerm{term(in("pool", "a")), named("n1")}
	got, err := template.daemonSet(placement{Terms: terms})
	if err != nil {
		t.Fatal(err)
	}

	want := manifest.DeepCopy()
	want.Namespace = "elsewhere"
	want.Labels["app.kubernetes.io/managed-by"] = "reboot-operator-manager"
	want.Labels["app.kubernetes.io/part-of"] = "reboot-operator"
	pod := &want.Spec.Template.Spec
	pod.Containers[0].Image = "registry/agent:2"
	pod.Containers[0].Args = append(pod.Containers[0].Args, "--engines=sentinel", "--identity=serviceaccount")
	pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
	if diff := cmp.Diff(want, typed(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDaemonSetEverywhereHasNoAffinity(t *testing.T) {
	got, err := template.daemonSet(placement{Everywhere: true})
	if err != nil {
		t.Fatal(err)
	}
	if got.Spec.Template.Spec.Affinity != nil {
		t.Errorf("affinity is %v", got.Spec.Template.Spec.Affinity)
	}
}

func TestABrokenManifestIsAnError(t *testing.T) {
	for name, tc := range map[string]struct{ manifest, want string }{
		"no YAML":         {"{", "error converting YAML to JSON: yaml: line 1: did not find expected node content"},
		"unknown field":   {"spec: {replicas: 1}", `error unmarshaling JSON: while decoding JSON: json: unknown field "replicas"`},
		"no pod":          {"metadata: {name: x}", "it has no pod template"},
		"other container": {"spec: {template: {spec: {containers: [{name: x}]}}}", `it has no container "agent"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Template{Manifest: tc.manifest}.Next(Observation{Policies: everything})
			if want := "reading the manifest of the agents: " + tc.want; err == nil || err.Error() != want {
				t.Errorf("error is %v, want %s", err, want)
			}
		})
	}
}
