package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// value is one of values.yaml: what `helm install --set` takes, with the comment above it and its default.
type value struct {
	name, comment, fallback string
}

// readme is the chart's README.md with the table of the values that values.yaml has now.
func readme(chart string) ([]byte, error) {
	path := filepath.Join(chart, "README.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err // it names the file
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
	var table strings.Builder
	table.WriteString(before + heading + "\nGenerated from [values.yaml](values.yaml): `make manifests`.\n\n| value | default | means |\n|---|---|---|\n")
	for _, v := range all {
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", v.name, v.fallback, v.comment)
	}
	return []byte(table.String()), nil
}

// values reads values.yaml, in which each value has its comment above it; a comment of a section is about the section.
func values(path string) ([]value, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err // it names the file
	}
	tree := map[string]any{}
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	var all []value
	var section, comment string
	for line := range strings.Lines(string(text)) {
		trimmed := strings.TrimSpace(line)
		name, rest, isKey := strings.Cut(trimmed, ":")
		inner := strings.HasPrefix(line, " ")
		switch {
		case strings.HasPrefix(trimmed, "#"):
			comment = strings.TrimSpace(comment + " " + strings.TrimSpace(strings.TrimPrefix(trimmed, "#")))
		case trimmed == "":
			comment = ""
		case !isKey || (inner && section == ""):
			return nil, fmt.Errorf("%s: %q is no value", path, trimmed)
		case !inner && rest == "":
			section, comment = name, ""
		default:
			if !inner {
				section = ""
			}
			v, err := valueOf(tree, section, name, comment)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			all, comment = append(all, v), ""
		}
	}
	return all, nil
}

func valueOf(tree map[string]any, section, name, comment string) (value, error) {
	full := name
	if section != "" {
		full = section + "." + name
		tree, _ = tree[section].(map[string]any)
	}
	if comment == "" {
		return value{}, fmt.Errorf("%s has no comment", full)
	}
	fallback, err := json.Marshal(tree[name])
	if err != nil {
		return value{}, fmt.Errorf("reading the default of %s: %w", full, err)
	}
	return value{name: full, comment: comment, fallback: string(fallback)}, nil
}
