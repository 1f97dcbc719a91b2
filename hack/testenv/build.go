package testenv

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// Shipped returns the path of a program that Build has built. `make build` uses another folder.
func Shipped(program string) string { return ShippedIn(Root(), program) }

// ShippedIn returns the path of a program that BuildIn has built in a checkout.
func ShippedIn(checkout, program string) string {
	return filepath.Join(checkout, "bin", "shipped", program)
}

// built holds the programs that this process has built, because even an up-to-date go build takes a
// second.
var built = struct {
	sync.Mutex
	paths map[string]bool
}{paths: map[string]bool{}}

// Build builds manager, agent or kubectl-reboot with the flags of the Makefile and the Dockerfile,
// except the version, and returns the program's path. Suites share the result.
func Build(ctx context.Context, program string) (string, error) { return BuildIn(ctx, Root(), program) }

// BuildIn is like Build, for another checkout.
func BuildIn(ctx context.Context, checkout, program string) (string, error) {
	out, folder := ShippedIn(checkout, program), "./"+program
	if program == "manager" {
		folder = "."
	}
	built.Lock()
	defer built.Unlock()
	if built.paths[out] {
		return out, nil
	}
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, folder)
	command.Dir, command.Env = checkout, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", program, err, bytes.TrimSpace(output))
	}
	built.paths[out] = true
	return out, nil
}

// Checkout returns a folder with the files of a commit. It fails if the clone does not have the
// commit. The clone may belong to another user.
func Checkout(ctx context.Context, commit string) (string, error) {
	folder := filepath.Join(Root(), "bin", "commits", commit)
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	const script = `mkdir -p "$1.part" && git -c safe.directory='*' archive "$2" | tar -x -C "$1.part" && mv "$1.part" "$1"`
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script, "bash", folder, commit)
	command.Dir = Root()
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("checking out %s: %w: %s", commit, err, bytes.TrimSpace(output))
	}
	return folder, nil
}
