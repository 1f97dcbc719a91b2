// Program chart generates parts of config/chart: the manifests from the kustomizations of config,
// and the table of values from values.yaml. `make manifests` runs it.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(root, "config", "chart", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the files by their path below config/chart.
func generate(root string) (map[string][]byte, error) {
	var built [6]objects
	for i, folder := range []string{"default", "overlays/rbac-fallback", "prometheus", "network-policy", "fleetlock", "network-policy/fleetlock"} {
		var err error
		if built[i], err = build(root, "config/"+folder); err != nil {
			return nil, err
		}
	}
	node, account, monitoring, policy, fleetlock := built[0], built[1], built[2], built[3], built[4]
	readme, err := readme(filepath.Join(root, "config", "chart"))
	if err != nil {
		return nil, err
	}
	kinds := node.take("CustomResourceDefinition")
	account.take("CustomResourceDefinition")
	node.take("Namespace") // helm install creates it, and refuses a chart that has it too
	account.take("Namespace")
	both := node.common(&account)
	return map[string][]byte{
		"crds/rebootpolicies.yaml":  kinds.text(),
		"files/common.yaml":         both.text(),
		"files/node.yaml":           node.text(),
		"files/serviceaccount.yaml": account.text(),
		"files/monitoring.yaml":     monitoring.text(),
		"files/network-policy.yaml": policy.text(),
		"files/fleetlock.yaml":      fleetlock.text(),

		"files/fleetlock-network-policy.yaml": built[5].text(),
		"README.md":                           readme,
	}, nil
}

// objects holds manifests, in the order in which they are applied.
type objects []string

// build runs kustomize on a folder.
func build(root, folder string) (objects, error) {
	command := exec.Command("go", "run", "-modfile=hack/tools/go.mod", "sigs.k8s.io/kustomize/kustomize/v5", "build", folder)
	command.Dir = root
	var stderr bytes.Buffer
	command.Stderr = &stderr
	text, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("building %s: %w: %s", folder, err, stderr.String())
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n---\n"), nil
}

// take removes the objects of a kind and returns them.
func (o *objects) take(kind string) objects {
	return o.split(func(text string) bool {
		var head struct{ Kind string }
		return yaml.Unmarshal([]byte(text), &head) == nil && head.Kind == kind
	})
}

// common removes the objects that both have from both, and returns them.
func (o *objects) common(other *objects) objects {
	both := o.split(func(text string) bool { return slices.Contains(*other, text) })
	other.split(func(text string) bool { return slices.Contains(both, text) })
	return both
}

func (o *objects) split(wanted func(text string) bool) objects {
	var taken, kept objects
	for _, text := range *o {
		if wanted(text) {
			taken = append(taken, text)
		} else {
			kept = append(kept, text)
		}
	}
	*o = kept
	return taken
}

func (o objects) text() []byte {
	return []byte("# Generated from the kustomizations of config: make manifests.\n" + strings.Join(o, "\n---\n") + "\n")
}
