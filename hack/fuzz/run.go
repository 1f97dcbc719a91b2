package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// fuzzAll runs all targets, also after one that fails, and reports how it goes.
func fuzzAll(ctx context.Context, targets []target, each time.Duration) error {
	var failed []error
	for i, t := range targets {
		fmt.Printf("[%d/%d] %s, %s\n", i+1, len(targets), t, each)
		found, err := fuzz(ctx, t, each)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		fmt.Printf("  %s\n", found)
		if err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// fuzz runs one target and reports what was found. What makes it fail is kept in the repository by Go itself.
func fuzz(ctx context.Context, t target, each time.Duration) (found string, err error) {
	// Go would spend a minute on making each large input that it finds smaller, and run nothing meanwhile.
	test := exec.CommandContext(ctx, "go", "test", "./"+t.folder, "-run=^$", "-fuzz=^"+t.name+"$", "-fuzztime="+each.String(), "-fuzzminimizetime=1s")
	test.Dir = testenv.Root()
	test.Cancel = func() error { return test.Process.Signal(os.Interrupt) } // It ends its workers.
	output, err := test.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("%s failed", t)
	}
	return lastLine(string(output)), nil
}

var progressLine = regexp.MustCompile(`(?m)^fuzz: elapsed: .* execs: (\d+) .* new interesting: (\d+) \(total: (\d+)\)$`)

// lastLine is how many inputs were run and found, as Go prints at the end.
func lastLine(output string) string {
	lines := progressLine.FindAllStringSubmatch(output, -1)
	if len(lines) == 0 {
		return "Go has reported no result"
	}
	last := lines[len(lines)-1]
	return fmt.Sprintf("%s runs; %s of %s inputs are new", last[1], last[2], last[3])
}
