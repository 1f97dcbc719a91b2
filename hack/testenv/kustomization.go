package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Kustomization writes into dir what `make deploy CONFIG=… COMPONENTS=…` applies: a folder of the repository, such as
// config/default, with folders of config/components.
func Kustomization(dir, folder string, components ...string) error {
	root, err := filepath.Rel(dir, Root()) // kustomize takes no absolute path
	if err != nil {
		return fmt.Errorf("writing a kustomization: %w", err)
	}
	text := strings.Builder{}
	fmt.Fprintf(&text, "resources:\n- %s\ncomponents:\n", filepath.Join(root, folder))
	for _, component := range components {
		fmt.Fprintf(&text, "- %s\n", filepath.Join(root, "config", "components", component))
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("writing a kustomization: %w", err)
	}
	return nil
}
