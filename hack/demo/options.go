package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/reboot-operator/reboot-operator/hack/fleet"
)

// options are the demo's flags.
type options struct {
	engines      []fleet.Engine
	nodes, limit int
	keep         bool
	picture      string
}

const usage = `Reboots a simulated cluster, for real: etcd, kube-apiserver, controllers, the manager and one agent per node.

Usage: demo [flags]
`

// parse reads the flags. flag.ErrHelp: the usage was asked for, and has been written.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	engine := flags.String("engine", fleet.DefaultEngine, "What the machines' updates come by: "+strings.Join(fleet.EngineNames(), ", ")+"; several for a mixed cluster.")
	flags.IntVar(&o.nodes, "nodes", 5, "How many nodes to reboot, 2 to 100.")
	flags.IntVar(&o.limit, "max-unavailable", 1, "How many may be unavailable at once.")
	flags.BoolVar(&o.keep, "keep", false, "Leave the cluster running until Ctrl-C, and print its KUBECONFIG.")
	flags.StringVar(&o.picture, "picture", "", "Write what the terminal showed to this file, as an SVG that moves.")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
	}
	if err != nil {
		return o, err
	}
	if o.engines, err = fleet.ParseEngines(*engine); err != nil {
		return o, fmt.Errorf("--engine: %w", err)
	}
	return o, o.check(flags.Args())
}

// check reports in one sentence what cannot work.
func (o options) check(args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q", args[0])
	case o.nodes < 2 || o.nodes > 100:
		return fmt.Errorf("--nodes is %d: 2 to 100 can be simulated", o.nodes)
	case len(o.engines) > o.nodes:
		return fmt.Errorf("--engine names %d engines for --nodes %d", len(o.engines), o.nodes)
	case o.limit < 1:
		return fmt.Errorf("--max-unavailable is %d: at least 1", o.limit)
	case o.limit >= o.nodes:
		return fmt.Errorf("--max-unavailable %d of %d nodes leaves none for the pods, which PodDisruptionBudgets would not allow", o.limit, o.nodes)
	}
	return nil
}
