package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBuildControlPlane_LeavesAssetsOfTheUserAlone(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", folder)
	if err := buildControlPlane(t.Context()); err == nil || !strings.Contains(err.Error(), folder+", which has no kwok: `make controlplane`") {
		t.Errorf("without kwok: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(folder, "kwok"), nil, 0o700))
	must(t, buildControlPlane(t.Context()))
}
