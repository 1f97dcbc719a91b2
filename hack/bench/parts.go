package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/hack/bench/agents"
	"github.com/reboot-operator/reboot-operator/hack/bench/drains"
	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/bench/reboots"
	"github.com/reboot-operator/reboot-operator/hack/bench/scale"
)

// parts are all there are, in the order in which they run. Each may have flags of its own, which begin with its name.
func parts(flags *flag.FlagSet) []figures.Part {
	return []figures.Part{
		drains.New(flags),
		reboots.New(flags),
		agents.New(flags),
		scale.New(flags),
		scale.NewWatches(flags),
	}
}

// choose picks the parts that a comma-separated list names. An empty list names all.
func choose(all []figures.Part, only string) ([]figures.Part, error) {
	if only == "" {
		return all, nil
	}
	var chosen []figures.Part
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(p figures.Part) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no part %q: there are %s", name, strings.Join(names(all), ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func names(all []figures.Part) []string {
	list := make([]string, len(all))
	for i, p := range all {
		list[i] = p.Name
	}
	return list
}
