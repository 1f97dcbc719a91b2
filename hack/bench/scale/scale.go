// Package scale measures the manager on thousands of nodes. The API server, etcd and the manager
// are real. This process writes Nodes like those in real clusters, and plays their kubelets and
// agents. It has neither controllers nor pods, because nothing that is measured looks at them.
package scale

import (
	"context"
	"fmt"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// options says what to measure.
type options struct {
	// nodes lists the numbers of nodes, lowest first. reboots is the number of nodes to reboot, at
	// most half of them.
	nodes   []int
	reboots int
	// slots is maxUnavailable.
	slots int
	down  time.Duration
	rest  time.Duration
	// settle is the time after its start from which the manager counts as being at rest.
	settle time.Duration
}

// Part is the part of the benchmark that measures the manager.
var Part = figures.Part{
	Name: "scale", About: "the manager on thousands of nodes: memory, CPU, requests, and how fast slots change hands",
	Run: func(ctx context.Context, screen *terminal.Terminal) (figures.Result, error) {
		o := &options{nodes: []int{1000, 5000, 15000}, reboots: 300, slots: 10, down: time.Second, rest: 30 * time.Second, settle: 10 * time.Second}
		var sizes []size
		err := inLab(ctx, o.slots, screen.Step, func(l *lab) (err error) {
			sizes, err = o.measure(ctx, l, screen.Step)
			return err
		})
		return report(o, sizes), err
	},
}

func (o *options) measure(ctx context.Context, l *lab, step stepper) (sizes []size, err error) {
	m := &managed{options: o, lab: l}
	if err := step("manager, built", func() error { return m.prepare(ctx) }); err != nil {
		return nil, err
	}
	for _, nodes := range o.nodes {
		s, err := m.measure(ctx, nodes, step)
		if err != nil {
			return sizes, fmt.Errorf("with %d nodes: %w", nodes, err)
		}
		sizes = append(sizes, s)
	}
	return sizes, nil
}
