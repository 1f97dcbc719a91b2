// The benchmark measures a rolling reboot of a simulated fleet: how long it takes, what it asks of the API server and how
// much memory it needs: `make bench`. It judges nothing by its exit code; the goals are printed beside what was measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// options are the benchmark's flags.
type options struct {
	nodes, pods    int
	rebootDuration time.Duration
	rest           time.Duration
}

func main() {
	os.Exit(run())
}

func run() int {
	var o options
	flag.IntVar(&o.nodes, "nodes", 10, "How many nodes to reboot.")
	flag.IntVar(&o.pods, "pods", 20, "How many pods there are for each node.")
	flag.DurationVar(&o.rebootDuration, "reboot-duration", 5*time.Second, "How long a machine is down.")
	flag.DurationVar(&o.rest, "rest", time.Minute, "How long to watch what is asked at rest.")
	flag.Parse()
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	screen := terminal.Open(os.Stdout, os.Getenv)
	defer screen.Close()
	err := (&bench{options: o, screen: screen}).run(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
	}
	if err != nil {
		return 1
	}
	return 0
}
