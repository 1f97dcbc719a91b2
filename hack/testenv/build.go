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
func Shipped(program string) string { return path("shipped", program) }

// Build builds manager, agent, kubectl-reboot, or the program of a folder, as it ships: with the flags of the Makefile and the
// Dockerfile, but for the version. It returns the program's path. Where it is up to date nothing is done: suites share it.
func Build(ctx context.Context, program string) (string, error) {
	return build(ctx, "shipped", program, []string{"CGO_ENABLED=0"}, "-trimpath")
}

// BuildQuickly builds with no flags of its own, so that it shares what has been compiled already.
func BuildQuickly(ctx context.Context, program string) (string, error) {
	return build(ctx, "quick", program, nil)
}

func path(kind, program string) string {
	return filepath.Join(Root(), "bin", kind, filepath.Base(program))
}

// built are the programs that this process has built. Even where nothing is to be done, go build takes a second to find out.
var built = struct {
	sync.Mutex
	paths map[string]bool
}{paths: map[string]bool{}}

func build(ctx context.Context, kind, program string, env []string, flags ...string) (string, error) {
	out, folder := path(kind, program), "./"+program
	if program == "manager" {
		folder = "."
	}
	built.Lock()
	defer built.Unlock()
	if built.paths[out] {
		return out, nil
	}
	command := exec.CommandContext(ctx, "go", append(append([]string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", out}, flags...), folder)...)
	command.Dir, command.Env = Root(), append(os.Environ(), env...)
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", program, err, bytes.TrimSpace(output))
	}
	built.paths[out] = true
	return out, nil
}
