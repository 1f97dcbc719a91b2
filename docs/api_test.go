package docs_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var update = flag.Bool("update", false, "write docs/api.md")

// field holds the description of a field in the CustomResourceDefinition.
type field struct {
	Description string           `json:"description"`
	Properties  map[string]field `json:"properties"`
	Items       *field           `json:"items"`
}

const apiIntro = `# RebootPolicy: all fields

<!-- Generated from api/v1alpha1 by make manifests. -->

RebootPolicy is cluster-scoped: ` + "`reboot-operator.io/v1alpha1`, short name `rbp`" + `. Every field is optional. The empty spec reboots every node that
needs it, one at a time, at any hour, after draining it. Defaults are never written into a policy. An absent list is empty, and the fields of an
absent object have their defaults. ` + "`kubectl explain rebootpolicy.spec`" + ` shows the same texts, with an example for each field.

`

const status = `
## status

The manager writes the status, and agents read the ledger from it. ` + "`kubectl explain rebootpolicy.status`" + ` describes its fields.
`

// TestAPI checks that docs/api.md has the fields and the texts of the CustomResourceDefinition. With -update it writes the page.
func TestAPI(t *testing.T) {
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
	all := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
	var page strings.Builder
	page.WriteString(apiIntro + "## spec\n")
	all["spec"].write(&page, 0)
	page.WriteString(status)
	if *update {
		if err := os.WriteFile(filepath.Join(testenv.Root(), "docs", "api.md"), []byte(page.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(page.String(), read(t, "docs/api.md")); diff != "" {
		t.Errorf("docs/api.md is out of date: make manifests (-definition +docs):\n%s", diff)
	}
}

// write writes the fields of f: a section for each one at the top, and below it a list.
func (f field) write(page *strings.Builder, depth int) {
	if f.Items != nil {
		f = *f.Items
	}
	_, isSelector := f.Properties["matchLabels"]
	_, hasName := f.Properties["name"]
	if isSelector || hasName && len(f.Properties) == 1 { // Kubernetes describes it, or the field is a reference
		return
	}
	for _, name := range slices.Sorted(maps.Keys(f.Properties)) {
		inner := f.Properties[name]
		sentences, values := whole(inner.Description)
		if definition, ok := strings.CutPrefix(sentences, name+" is "); ok {
			sentences = fmt.Sprintf("**%s**: %s", name, definition)
		} else {
			sentences = fmt.Sprintf("**%s** %s", name, strings.TrimPrefix(sentences, name+" "))
		}
		if depth == 0 {
			fmt.Fprintf(page, "\n### %s\n\n%s\n", name, sentences)
		} else {
			fmt.Fprintf(page, "%s- %s\n", strings.Repeat("  ", depth-1), sentences)
		}
		var below strings.Builder
		for _, value := range values {
			fmt.Fprintf(&below, "%s- %s\n", strings.Repeat("  ", depth), value)
		}
		inner.write(&below, depth+1)
		if depth == 0 && below.Len() > 0 {
			page.WriteString("\n")
		}
		page.WriteString(below.String())
	}
}

// obvious are sentences that the introduction says for all fields.
var obvious = []string{
	"If it is absent, its fields have their defaults.",
	"Defaults to none.",
}

var enumValue = regexp.MustCompile(`^- (\w+): `)

// whole returns a description without its example, and the values of an enumeration apart.
func whole(description string) (sentences string, values []string) {
	var lines []string
	for line := range strings.SplitSeq(description, "\n") {
		switch {
		case strings.HasPrefix(line, "Example: "), line == "", slices.Contains(obvious, line):
		case enumValue.MatchString(line):
			values = append(values, enumValue.ReplaceAllString(line, "`$1`: "))
		default:
			if before, endsIn := strings.CutSuffix(line, ":"); endsIn { // the values are a list below
				line = strings.Replace(before+".", " is one of.", " is one of these.", 1)
			}
			lines = append(lines, strings.NewReplacer("{", "\\{", "<", "&lt;").Replace(line))
		}
	}
	return strings.Join(lines, " "), values
}
