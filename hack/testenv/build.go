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

// Shipped is the path of a program that Build has built: apart from those that `make build` makes for people.
func Shipped(program string) string { return ShippedIn(Root(), program) }

// ShippedIn returns the path of a program that BuildIn has built in a checkout.
func ShippedIn(checkout, program string) string {
	return filepath.Join(checkout, "bin", "shipped", program)
}

// built are the programs that this process has built. Even where nothing is to be done, go build takes a second to find out.
var built = struct {
	sync.Mutex
	paths map[string]bool
}{paths: map[string]bool{}}

// Build builds manager, agent or kubectl-reboot as it ships: with the flags of the Makefile and the Dockerfile, but for the version. It
// returns the program's path. Where it is up to date nothing is done: suites share it.
func Build(ctx context.Context, program string) (string, error) { return BuildIn(ctx, Root(), program) }

// BuildIn builds a program as Build does, in another checkout.
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

// Checkout returns a folder with the files of a commit. A clone without that commit is an error. The
// clone may belong to another user.
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
