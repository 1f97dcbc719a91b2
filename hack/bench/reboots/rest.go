package reboots

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

const (
	// rest is the period in which the requests of agents at rest are counted. signals is the number
	// of times that an engine then reports a need.
	rest, signals = time.Minute, 20
	// goalMemory is the limit of an agent's memory at rest.
	goalMemory = 36 << 20
)

// atRest holds the costs of agents at rest, and how fast they report a need.
type atRest struct {
	// memory is the memory of the largest agent.
	memory process.Memory
	// asked counts the requests of all agents.
	asked fleet.Asked
	// detected holds the times from a signal to the Node's condition.
	detected []time.Duration
}

// rest measures the agents while the policy is paused. A need ends when the engine withdraws it.
func (b *bench) rest(ctx context.Context, policy *fleet.Policy) error {
	pause := func(value string) error {
		_, err := b.fleet.Cluster.Kubectl(ctx, nil, "patch", "rebootpolicy", policy.Name, "--type=merge", `--patch={"spec":{"pause":`+value+`}}`)
		return err
	}
	if err := pause(`{"reason":"this is a benchmark"}`); err != nil {
		return err
	}
	if err := b.screen.Step(fmt.Sprintf("at rest for %s", rest), func() error { return b.count(ctx) }); err != nil {
		return err
	}
	if err := b.screen.Step(fmt.Sprintf("%d signals", signals), func() error { return b.signals(ctx) }); err != nil {
		return err
	}
	return pause("null")
}

func (b *bench) count(ctx context.Context) error {
	from := time.Now()
	if !lifecycle.Pause(ctx, clock.RealClock{}, rest) {
		return ctx.Err()
	}
	b.result.atRest.memory = figures.Largest(process.Memory{}, b.fleet.Agents())
	requests, err := b.fleet.Cluster.Requests(from, time.Now())
	b.result.atRest.asked = fleet.Account(slices.DeleteFunc(requests, func(r embedded.Request) bool { return fleet.ProgramOf(r) != "agent" }))
	return err
}

// signals makes the engines report a need and withdraw it, one machine after the other.
func (b *bench) signals(ctx context.Context) error {
	for i := range signals {
		host := b.fleet.Hosts[i%nodes]
		took, err := b.broadcast(ctx, host, hosttest.NeedReboot(fmt.Sprintf("4230.2.%d", i+1)), timeline.Waiting)
		if err != nil {
			return err
		}
		b.result.atRest.detected = append(b.result.atRest.detected, took)
		if _, err := b.broadcast(ctx, host, hosttest.Idle(), timeline.UpToDate); err != nil {
			return err
		}
	}
	return nil
}

// broadcast broadcasts a status, and returns the time until the Node showed the result.
func (b *bench) broadcast(ctx context.Context, host *fleet.Host, status hosttest.Status, want timeline.State) (took time.Duration, err error) {
	from := time.Now()
	if err := host.UpdateEngine.Emit(status); err != nil {
		return 0, err
	}
	return took, b.fleet.Await(ctx, fmt.Sprintf("%s to be %s", host.Name, want), func() bool {
		changes := b.fleet.Recorder.Read().Changes
		i := slices.IndexFunc(changes, func(c timeline.Change) bool {
			return c.At.After(from) && c.Node == host.Name && c.To == want && c.From != want
		})
		if i >= 0 {
			took = changes[i].At.Sub(from)
		}
		return i >= 0
	})
}

func (r atRest) rows() []figures.Row {
	return []figures.Row{
		figures.Judged("largest agent", figures.Memory(r.memory), r.memory.Resident < goalMemory, "below "+figures.Mebibytes(goalMemory)),
		figures.Judged("requests of all agents, without watches", strconv.Itoa(r.asked.Work()), r.asked.Work() == 0, "none"),
		figures.Figure("watches started in that time, by each agent", fmt.Sprintf("%.1f", float64(r.asked.Watches)/nodes)),
		figures.Figure("from D-Bus signal to RebootRequired: median", figures.QuantileText(r.detected, 0.5)),
		figures.Figure("the same: longest", figures.QuantileText(r.detected, 1)),
	}
}
