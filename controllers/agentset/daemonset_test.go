package agentset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/config/agent"
)

var template = Template{Manifest: agent.Manifest(), Namespace: "elsewhere", Image: "registry/agent:2"}

// typed is what the API server would read.
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
	got, err := template.DaemonSet(Placement{Terms: terms})
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
	got, err := template.DaemonSet(Placement{Everywhere: true})
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
