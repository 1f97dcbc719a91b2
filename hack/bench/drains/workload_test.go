package drains

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

func documents(manifest []byte) []string {
	return slices.DeleteFunc(strings.Split(string(manifest), "---\n"), func(text string) bool { return text == "" })
}

func TestWorkload_EveryPodIsUnderABudgetOfItsOwnDeployment(t *testing.T) {
	pods, ends := 0, map[string]int{}
	var selectors []string
	for _, document := range documents(workload(25, "n1", "n2"))[1:] {
		var d appsv1.Deployment
		if err := yaml.UnmarshalStrict([]byte(document), &d); err != nil {
			t.Fatal(fmt.Errorf("%w in\n%s", err, document))
		}
		pods += int(*d.Spec.Replicas)
		ends[d.Spec.Template.Annotations["embedded.reboot-operator.io/stop"]]++
		selectors = append(selectors, d.Spec.Selector.MatchLabels["app"])
		term := d.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
		if diff := cmp.Diff([]string{"n1", "n2"}, term.MatchExpressions[0].Values); diff != "" {
			t.Errorf("nodes (-want +got):\n%s", diff)
		}
	}
	if pods != 25 {
		t.Errorf("%d pods, want 25", pods)
	}
	if diff := cmp.Diff(map[string]int{"1s": 1, "2s": 1, "3s": 1}, ends); diff != "" {
		t.Errorf("Deployments by the time their pods take to end (-want +got):\n%s", diff)
	}
	var guarded []string
	for _, document := range documents(budgets(25)) {
		var b policyv1.PodDisruptionBudget
		if err := yaml.UnmarshalStrict([]byte(document), &b); err != nil {
			t.Fatal(fmt.Errorf("%w in\n%s", err, document))
		}
		if b.Spec.MaxUnavailable.IntValue() != 1 {
			t.Errorf("%s allows %v", b.Name, b.Spec.MaxUnavailable)
		}
		guarded = append(guarded, b.Spec.Selector.MatchLabels["app"])
	}
	if diff := cmp.Diff(selectors, guarded); diff != "" {
		t.Errorf("budgets (-want +got):\n%s", diff)
	}
}

func TestSizes(t *testing.T) {
	cases := map[string]string{
		"30,110,250": "", "7": "", "250,30": "the fewest first", "": "is no number", "0": "is no number", "301": "is no number", "a,b": "is no number",
	}
	for text, failed := range cases {
		t.Run(text, func(t *testing.T) {
			var s sizes
			err := s.Set(text)
			if (err != nil) != (failed != "") || err != nil && !strings.Contains(err.Error(), failed) {
				t.Fatalf("error %v, want %q", err, failed)
			}
			if err == nil && s.String() != text {
				t.Errorf("read as %s", s.String())
			}
		})
	}
}
