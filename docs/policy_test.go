package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/judge/definition"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// What the guides show of a RebootPolicy has fields that there are, with values that the API server accepts.
func TestPolicies_AreAccepted(t *testing.T) {
	kind, err := definition.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, guide := range []string{"README.md", "docs/policy.md", "docs/hooks.md", "docs/operations.md"} {
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

// policyOf is a policy with what a block shows: all of it, its drain rules, what its status has of versions, or fields of its spec.
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
	case top["versions"] != nil:
		top = map[string]any{"status": top}
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

// field is what the CustomResourceDefinition has of a field.
type field struct {
	Description string           `json:"description"`
	Properties  map[string]field `json:"properties"`
	Items       *field           `json:"items"`
}

// docs/policy.md has every field of the spec, and the defaults that kubectl explain shows.
func TestPolicy_HasEveryField(t *testing.T) {
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema field `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "config/crd/bases/reboot-operator.io_rebootpolicies.yaml")), &crd); err != nil {
		t.Fatal(err)
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	code := strings.Join(regexp.MustCompile("(?s)```.*?```|`[^`]+`").FindAllString(read(t, "docs/policy.md"), -1), "\n")
	spec.each("", func(path string, _ field) {
		if name := path[strings.LastIndex(path, ".")+1:]; !regexp.MustCompile(`\b` + name + `\b`).MatchString(code) {
			t.Errorf("%s is not on the page", path)
		}
	})
	rows, err := document.Table(filepath.Join(testenv.Root(), "docs", "policy.md"), "")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, row := range rows {
		path, _, _ := strings.Cut(strings.Trim(row[0], "`"), ":")
		top, _, _ := strings.Cut(path, ".")
		if _, ours := spec.Properties[top]; !ours {
			continue
		}
		checked++
		of, is := spec.at(path)
		if !is {
			t.Errorf("there is no field %s", path)
		}
		absent := regexp.MustCompile(`(?m)^(Defaults to|If .* absent).*$`).FindString(of.Description)
		if fallback := strings.Trim(row[1], "`"); !strings.Contains(absent, fallback) {
			t.Errorf("%s has default %q on the page, and kubectl explain shows: %s", path, fallback, absent)
		}
	}
	if checked < 15 {
		t.Errorf("only %d defaults are on the page", checked)
	}
}

// each calls check for all fields in one, but for those of selectors, which are Kubernetes'.
func (f field) each(path string, check func(path string, f field)) {
	if f.Items != nil {
		f = *f.Items
	}
	if _, selector := f.Properties["matchLabels"]; selector {
		return
	}
	for name, inner := range f.Properties {
		check(path+"."+name, inner)
		inner.each(path+"."+name, check)
	}
}

// at is the field at a path such as drain.timeout.
func (f field) at(path string) (field, bool) {
	for name := range strings.SplitSeq(path, ".") {
		inner, is := f.Properties[name]
		if !is {
			return field{}, false
		}
		f = inner
	}
	return f, true
}
