package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/reboot-operator/reboot-operator/hack/document"
)

// value is a value in values.yaml, with its name for `helm install --set`, the comment above it and
// its default.
type value struct {
	name, comment, fallback string
}

// readme returns the chart's README.md with a new table of values.
func readme(chart string) ([]byte, error) {
	path := filepath.Join(chart, "README.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err // the error names the file
	}
	const heading = "\n## Values\n"
	before, _, found := strings.Cut(string(text), heading)
	if !found {
		return nil, fmt.Errorf("%s has no heading %q", path, strings.TrimSpace(heading))
	}
	all, err := values(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for _, v := range all {
		rows = append(rows, []string{"`" + v.name + "`", "`" + v.fallback + "`", v.comment})
	}
	return []byte(before + heading + "\nGenerated from [values.yaml](values.yaml): `make manifests`.\n\n" + document.Rows([]string{"value", "default", "means"}, rows)), nil
}

// values reads values.yaml, in which every value has a comment above it.
func values(path string) ([]value, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err // the error names the file
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return valuesOf(root.Content[0], "")
}

// valuesOf returns the values of a section, which is a mapping without braces.
func valuesOf(section *yaml.Node, prefix string) (all []value, err error) {
	for i := 0; i < len(section.Content); i += 2 {
		key, content := section.Content[i], section.Content[i+1]
		name := prefix + key.Value
		if content.Kind == yaml.MappingNode && content.Style != yaml.FlowStyle {
			inner, err := valuesOf(content, name+".")
			if err != nil {
				return nil, err
			}
			all = append(all, inner...)
			continue
		}
		comment, commented := strings.CutPrefix(key.HeadComment, "# ")
		if !commented {
			return nil, fmt.Errorf("%s has no comment", name)
		}
		var of any
		if err := content.Decode(&of); err != nil {
			return nil, fmt.Errorf("reading the default of %s: %w", name, err)
		}
		fallback, err := json.Marshal(of)
		if err != nil {
			return nil, fmt.Errorf("reading the default of %s: %w", name, err)
		}
		all = append(all, value{name: name, comment: strings.ReplaceAll(comment, "\n# ", " "), fallback: string(fallback)})
	}
	return all, nil
}
