package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/reboot-operator/reboot-operator/hack/fleet"
)

// options holds the flags of the demo.
type options struct {
	engines      []fleet.Engine
	nodes, limit int
	keep         bool
	picture      string
}

// parse parses the flags. Its error says in one sentence what cannot work. It ends the program if a
// flag cannot be parsed.
func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("demo", flag.ExitOnError) // libraries register their flags in flag.CommandLine
	engine := flags.String("engine", fleet.DefaultEngine, "Update engine of the machines: "+strings.Join(fleet.EngineNames(), ", ")+"; several for a mixed cluster.")
	flags.IntVar(&o.nodes, "nodes", 5, "Number of nodes to reboot, from 2 to 100.")
	flags.IntVar(&o.limit, "max-unavailable", 1, "Number of nodes that may be unavailable at once.")
	flags.BoolVar(&o.keep, "keep", false, "Leave the cluster running until Ctrl-C, and print its KUBECONFIG.")
	flags.StringVar(&o.picture, "picture", "", "File for an animated SVG of the terminal.")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.engines, err = fleet.ParseEngines(*engine); err != nil {
		return o, fmt.Errorf("--engine: %w", err)
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.nodes < 2 || o.nodes > 100:
		return o, fmt.Errorf("--nodes is %d, but must be from 2 to 100", o.nodes)
	case len(o.engines) > o.nodes:
		return o, fmt.Errorf("--engine names %d engines for --nodes %d", len(o.engines), o.nodes)
	case o.limit < 1:
		return o, fmt.Errorf("--max-unavailable is %d, but must be at least 1", o.limit)
	case o.limit >= o.nodes:
		return o, fmt.Errorf("--max-unavailable %d of %d nodes leaves no node for the pods, whose PodDisruptionBudgets would block the drains", o.limit, o.nodes)
	}
	return o, nil
}
