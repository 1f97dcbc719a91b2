// The fuzzer runs every fuzz target of the repository for a while, one after the other: `make fuzz`. With --keep it chooses
// those of the inputs found so far that are worth keeping, and puts them into the repository: `make fuzz-corpus`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// options are the fuzzer's flags.
type options struct {
	// time is how long each target runs.
	time time.Duration
	// only is a regular expression: targets that do not match are left out.
	only *regexp.Regexp
	// keep chooses inputs, and runs nothing.
	keep bool
}

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "fuzz: %v\n", err)
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	targets, err := findTargets(testenv.Root(), o.only)
	if err == nil && o.keep {
		err = keepAll(ctx, targets)
	} else if err == nil {
		err = fuzzAll(ctx, targets, o.time)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "fuzz: %v\n", err)
		return 1
	}
	return 0
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	flags.DurationVar(&o.time, "time", 30*time.Second, "How long each target runs.")
	only := flags.String("only", "", "A regular expression: only targets such as agent/host.FuzzBootID that match.")
	flags.BoolVar(&o.keep, "keep", false, "Choose inputs that were found for testdata/fuzz, and run nothing.")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.time <= 0 {
		return o, errors.New("--time must be more than 0")
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("--only: %w", err)
	}
	return o, nil
}
