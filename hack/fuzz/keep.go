package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// prefix distinguishes inputs that were chosen from those that Go keeps because they failed, which stay.
const prefix = "kept-"

// keepAll chooses inputs for all targets.
func keepAll(ctx context.Context, targets []target) error {
	for _, t := range targets {
		inputs, err := t.inputs(ctx)
		if err == nil {
			err = t.measure(ctx, inputs)
		}
		if err == nil {
			err = t.keep(choose(inputs))
		}
		if err != nil {
			return fmt.Errorf("choosing inputs for %s: %w", t, err)
		}
	}
	return nil
}

// inputs are those in the repository and those that Go has found on this machine, each once.
func (t target) inputs(ctx context.Context) ([]*input, error) {
	cache, err := output(ctx, "go", "env", "GOCACHE")
	if err != nil {
		return nil, err
	}
	path, err := output(ctx, "go", "list", "./"+t.folder)
	if err != nil {
		return nil, err
	}
	byName := map[string]*input{}
	for _, pattern := range []string{
		filepath.Join(testenv.Root(), t.corpus(), prefix+"*"),
		filepath.Join(strings.TrimSpace(cache), "fuzz", strings.TrimSpace(path), t.name, "*"),
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			if sum := sha256.Sum256(content); len(content) <= maxInputBytes {
				name := prefix + hex.EncodeToString(sum[:4])
				byName[name] = &input{name: name, content: content}
			}
		}
	}
	return smallest(byName), nil
}

// measure runs each input by itself and notes what it covers beyond what the seeds in the code do.
func (t target) measure(ctx context.Context, inputs []*input) error {
	bench, err := os.MkdirTemp("", "fuzz")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(bench) }()
	program := filepath.Join(bench, "test")
	if _, err := output(ctx, "go", "test", "-c", "-covermode=count", "-coverpkg=./"+t.folder, "-o="+program, "./"+t.folder); err != nil {
		return err
	}
	corpus := filepath.Join(bench, "testdata", "fuzz", t.name)
	if err := os.MkdirAll(corpus, 0o700); err != nil {
		return err
	}
	seeds, err := covered(ctx, bench, t.name, `seed#\d+`)
	if err != nil {
		return err
	}
	for _, in := range inputs {
		if err := os.WriteFile(filepath.Join(corpus, in.name), in.content, 0o600); err != nil {
			return err
		}
		if in.covers, err = covered(ctx, bench, t.name, in.name); err != nil {
			return fmt.Errorf("%w; the input is\n%s", err, in.content)
		}
		in.covers.remove(seeds)
	}
	return nil
}

// covered runs the test program in a folder with one input and reads what it covers.
func covered(ctx context.Context, folder, function, input string) (blocks, error) {
	profile := filepath.Join(folder, "profile")
	test := exec.CommandContext(ctx, filepath.Join(folder, "test"), "-test.run=^"+function+"$/^"+input+"$", "-test.coverprofile="+profile)
	test.Dir = folder
	if output, err := test.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, output)
	}
	text, err := os.ReadFile(profile)
	return parseProfile(string(text)), err
}

// keep makes the chosen inputs those in the repository.
func (t target) keep(chosen []*input) error {
	folder := filepath.Join(testenv.Root(), t.corpus())
	before, err := filepath.Glob(filepath.Join(folder, prefix+"*"))
	if err != nil {
		return err
	}
	var failures []error
	for _, file := range before {
		failures = append(failures, os.Remove(file))
	}
	if len(chosen) > 0 {
		failures = append(failures, os.MkdirAll(folder, 0o755))
	}
	for _, in := range chosen {
		failures = append(failures, os.WriteFile(filepath.Join(folder, in.name), in.content, 0o644))
	}
	fmt.Printf("%-50s %d inputs\n", t, len(chosen))
	return errors.Join(failures...)
}

// output runs a program at the repository's root and returns what it prints.
func output(ctx context.Context, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = testenv.Root()
	text, err := command.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s: %w: %s", name, err, failed.Stderr)
	}
	return string(text), err
}
