// Package agents is the part of the benchmark that measures what an agent costs its node and the API server while nothing is
// to be done, and how soon it passes on that a reboot is needed.
package agents

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// empty is a workload that runs nothing.
const empty = "apiVersion: v1\nkind: Namespace\nmetadata: {name: empty}\n"

const (
	nodes   = 5
	signals = 20
	// rest is how long is watched what is asked at rest.
	rest = time.Minute
)

// bench is one run.
type bench struct {
	screen *terminal.Terminal
	fleet  *fleet.Fleet
	result result
}

// Part is the part.
var Part = figures.Part{
	Name: "agents", About: "the agent: memory, size, requests at rest, time from D-Bus signal to condition",
	Run: func(ctx context.Context, screen *terminal.Terminal) (figures.Result, error) {
		b := &bench{screen: screen}
		err := b.run(ctx)
		return b.result.report(), err
	},
}

func (b *bench) run(ctx context.Context) (err error) {
	b.fleet, err = fleet.Start(ctx, fleet.Options{
		Nodes: nodes, Workload: []byte(empty), Step: b.screen.Step,
	})
	if err != nil {
		return err
	}
	defer b.fleet.Stop()
	// No node is to reboot: a need ends when the engine takes it back.
	if _, err := b.fleet.ApplyPolicy(ctx, func(spec *v1alpha1.RebootPolicySpec) { spec.Pause = &v1alpha1.Pause{Reason: "this is a benchmark"} }); err != nil {
		return err
	}
	if err := b.screen.Step(fmt.Sprintf("at rest for %s", rest), func() error { return b.rest(ctx) }); err != nil {
		return err
	}
	if err := b.screen.Step(fmt.Sprintf("%d signals", signals), func() error { return b.signals(ctx) }); err != nil {
		return err
	}
	return b.weigh()
}

// rest watches what is asked while nothing is to be done, and how much memory that takes.
func (b *bench) rest(ctx context.Context) error {
	from := time.Now()
	select {
	case <-time.After(rest):
	case <-ctx.Done():
		return ctx.Err()
	}
	b.result.atRest = figures.Largest(b.result.atRest, b.fleet.Agents())
	requests, err := b.fleet.Cluster.Requests(from, time.Now())
	b.result.asked = fleet.Account(requests)
	return err
}

// signals has the engines report that a reboot is needed, and take it back, one machine after the other.
func (b *bench) signals(ctx context.Context) error {
	for i := range signals {
		host := b.fleet.Hosts[i%len(b.fleet.Hosts)]
		took, err := b.broadcast(ctx, host, hosttest.NeedReboot(fmt.Sprintf("4230.2.%d", i+1)), timeline.Waiting)
		if err != nil {
			return err
		}
		b.result.detected = append(b.result.detected, took)
		if _, err := b.broadcast(ctx, host, hosttest.Idle(), timeline.UpToDate); err != nil {
			return err
		}
	}
	return nil
}

// broadcast broadcasts a status, and returns how long it took until the Node showed what follows from it.
func (b *bench) broadcast(ctx context.Context, host *fleet.Host, status hosttest.Status, want timeline.State) (time.Duration, error) {
	from := time.Now()
	if err := host.UpdateEngine.Emit(status); err != nil {
		return 0, err
	}
	var at time.Time
	err := b.fleet.Await(ctx, fmt.Sprintf("%s to be %s", host.Name, want), func() bool {
		for _, c := range b.fleet.Recorder.Read().Changes {
			if at.IsZero() && !c.At.Before(from) && c.Node == host.Name && c.To == want && c.From != want {
				at = c.At
			}
		}
		return !at.IsZero()
	})
	return at.Sub(from), err
}

// weigh reads how large the agents have been, and how large their program is.
func (b *bench) weigh() error {
	for _, p := range b.fleet.Agents() {
		m, err := p.Memory()
		if err != nil {
			return err
		}
		b.result.peak = max(b.result.peak, m.Peak)
	}
	program, err := os.Stat(testenv.Shipped("agent"))
	if err != nil {
		return err // it names the file
	}
	b.result.program = program.Size()
	return nil
}
