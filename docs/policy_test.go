package docs_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/judge/definition"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// TestPolicies_AreAccepted checks that the API server accepts every part of a RebootPolicy in the guides.
func TestPolicies_AreAccepted(t *testing.T) {
	kind, err := definition.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, guide := range append(howTos(t), "README.md", "docs/operations.md") {
		blocks, err := document.Blocks(filepath.Join(testenv.Root(), guide))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks {
			if block.Language != "yaml" || strings.Contains(block.Text, "kind: ClusterRole") {
				continue
			}
			shown++
			t.Run(guide+", "+block.Heading, func(t *testing.T) {
				policy := policyOf(t, block.Text)
				if err := kind.Refusal(t.Context(), &v1alpha1.RebootPolicy{ObjectMeta: policy.ObjectMeta}, policy); err != nil {
					t.Errorf("%v in\n%s", err, block.Text)
				}
			})
		}
	}
	if shown < 15 {
		t.Errorf("only %d blocks show a policy", shown)
	}
}

// policyOf returns a policy with what a block shows: all of it, its drain rules, or fields of its spec.
func policyOf(t *testing.T, block string) *v1alpha1.RebootPolicy {
	t.Helper()
	var top map[string]any
	if err := yaml.Unmarshal([]byte(block), &top); err != nil {
		t.Fatal(err)
	}
	switch {
	case top["spec"] != nil:
	case top["rules"] != nil:
		top = map[string]any{"spec": map[string]any{"drain": top}}
	default:
		top = map[string]any{"spec": top}
	}
	text, err := yaml.Marshal(top)
	if err != nil {
		t.Fatal(err)
	}
	policy := &v1alpha1.RebootPolicy{}
	policy.Name = "workers"
	if err := yaml.UnmarshalStrict(text, policy); err != nil {
		t.Fatalf("%v in\n%s", err, block)
	}
	return policy
}

// howTos returns the how-to pages, by their paths in the repository.
func howTos(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(testenv.Root(), "docs", "howto", "*.md"))
	if err != nil || len(found) == 0 {
		t.Fatalf("found no how-to pages (%v)", err)
	}
	var all []string
	for _, path := range found {
		all = append(all, filepath.Join("docs", "howto", filepath.Base(path)))
	}
	return all
}

// TestHowTos_AreShort checks that each how-to page has at most 600 words.
func TestHowTos_AreShort(t *testing.T) {
	for _, page := range howTos(t) {
		if words := len(strings.Fields(read(t, page))); words > 600 {
			t.Errorf("%s has %d words", page, words)
		}
	}
}
