package testenv

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Build builds manager, agent or kubectl-reboot into bin, and returns the program's path. It is stripped as in the image. Compiled
// with no flags of its own it shares what has been compiled for the tests, and where it is up to date nothing is done: suites share it.
func Build(ctx context.Context, program string) (string, error) {
	path, folder := filepath.Join(Root(), "bin", program), "./"+program
	if program == "manager" {
		folder = "."
	}
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", path, folder)
	build.Dir = Root()
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", program, err, bytes.TrimSpace(output))
	}
	return path, nil
}
