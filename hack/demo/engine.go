package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// maxWhere is the maximum width of the list of machines.
const maxWhere = 40

// engine is the update engine of some machines.
type engine struct {
	fleet.Engine
	// nodes lists the machines that have it.
	nodes []string
}

// enginesOf returns the engines of a fleet, in the order of its machines.
func enginesOf(hosts []*fleet.Host) []engine {
	var engines []engine
	for _, h := range hosts {
		i := slices.IndexFunc(engines, func(e engine) bool { return e.Name == h.Engine.Name })
		if i < 0 {
			i, engines = len(engines), append(engines, engine{Engine: h.Engine})
		}
		engines[i].nodes = append(engines[i].nodes, h.Name)
	}
	return engines
}

// acts describes what somebody does on which machines.
func acts(engines []engine) []string {
	var lines []string
	for _, e := range engines {
		where := terminal.Cut(strings.Join(e.nodes, ", "), maxWhere)
		if len(engines) == 1 {
			where = fmt.Sprintf("all %d machines", len(e.nodes))
		}
		lines = append(lines, fmt.Sprintf("  On %s: %s", where, e.Act))
	}
	return lines
}

// detected checks that every agent has reported the update.
func (e engine) detected(views []timeline.View) check {
	count, report := 0, "no agent has named the update"
	var silent []string
	for _, v := range views {
		missing := func(part string) bool { return !strings.Contains(v.Report, part) }
		switch {
		case !slices.Contains(e.nodes, v.Node):
		case slices.ContainsFunc(e.Reports, missing):
			silent = append(silent, v.Node)
		default:
			if count == 0 {
				report = v.Report
			}
			count++
		}
	}
	return check{count == len(e.nodes), fmt.Sprintf("%d of %d agents detected %s%s: %s", count, len(e.nodes), e.Name,
		names(", but not ", silent), report)}
}
