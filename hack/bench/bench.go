package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

const (
	// sample is how often memory is looked at, and whether the reboots are done.
	sample = 200 * time.Millisecond
	// patience is how much longer than the machines are down the reboots may take, for each node.
	patience = time.Minute
	// drainer is the user that kubectl is, so that its requests can be told from everybody else's.
	drainer = "kubectl-drain"
)

// bench is one run.
type bench struct {
	options options
	screen  *terminal.Terminal
	clock   clock.RealClock
	fleet   *fleet.Fleet
	result  result
}

func (b *bench) run(ctx context.Context) (err error) {
	if err := fleet.BuildControlPlane(ctx); err != nil {
		return err
	}
	if err := b.screen.Step("dbus-daemon", func() error { return fleet.InstallBus(ctx) }); err != nil {
		return err
	}
	engines, err := fleet.ParseEngines(fleet.DefaultEngine)
	if err != nil {
		return err
	}
	b.fleet, err = fleet.Start(ctx, fleet.Options{
		Nodes: b.options.nodes, Engines: engines, Workload: workload(b.options), RebootDuration: b.options.rebootDuration,
		Step: b.screen.Step,
	})
	if err != nil {
		return err
	}
	defer b.fleet.Stop()
	policy, err := b.fleet.ApplyPolicy(ctx, func(spec *v1alpha1.RebootPolicySpec) {
		one := intstr.FromInt32(1)
		spec.Concurrency, spec.Settle = &v1alpha1.Concurrency{MaxUnavailable: &one}, &metav1.Duration{}
	})
	if err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{fmt.Sprintf("at rest for %s", b.options.rest), func() error { return b.rest(ctx) }},
		{fmt.Sprintf("%d nodes of %d pods rebooted, one at a time", b.options.nodes, b.options.pods), func() error { return b.reboot(ctx, policy) }},
		{"kubectl drain of one of them", func() error { return b.drain(ctx) }},
	} {
		if err := b.screen.Step(step.name, step.run); err != nil {
			return err
		}
	}
	b.screen.Print(b.result.report(b.screen.Theme)...)
	return nil
}

// rest watches what is asked while nothing is to be done.
func (b *bench) rest(ctx context.Context) (err error) {
	from := b.clock.Now()
	select {
	case <-b.clock.After(b.options.rest):
	case <-ctx.Done():
		return ctx.Err()
	}
	b.result.rest, err = b.asked(from)
	return err
}

// reboot reboots every node once, and looks at the programs' memory meanwhile.
func (b *bench) reboot(ctx context.Context, policy *fleet.Policy) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(b.options.nodes)*(b.options.rebootDuration+patience))
	defer cancel()
	from := b.clock.Now()
	if err := b.fleet.Stage(); err != nil {
		return err
	}
	for !policy.Finished(ctx) {
		if err := cmp.Or(b.fleet.Err(), ctx.Err()); err != nil {
			return err
		}
		b.result.agentMemory = largest(b.result.agentMemory, b.fleet.Agents())
		b.result.managerMemory = largest(b.result.managerMemory, b.fleet.Managers())
		<-b.clock.After(sample)
	}
	b.fleet.Recorder.Read(func(line *timeline.Timeline) { b.result.runs, b.result.peak = line.Runs(), len(line.Peak().Nodes) })
	for _, run := range b.result.runs {
		b.result.wall = max(b.result.wall, run.Done.Sub(from))
	}
	var err error
	b.result.asked, err = b.asked(from)
	return err
}

// largest is the memory of the process that holds most, or that of one that held more before.
func largest(before process.Memory, processes []*process.Process) process.Memory {
	for _, p := range processes {
		m, err := p.Memory()
		if err == nil && m.Resident > before.Resident { // It may just have ended.
			before = m
		}
	}
	return before
}

// drain measures what kubectl does with the node that has most nearly as many pods as each had at the start.
func (b *bench) drain(ctx context.Context) error {
	kubeconfig, err := b.fleet.Cluster.UserKubeconfig(drainer, "system:masters")
	if err != nil {
		return err
	}
	pods := b.fleet.Workload()
	off := func(h *fleet.Host) int { return max(pods[h.Name]-b.options.pods, b.options.pods-pods[h.Name]) }
	host := slices.MinFunc(b.fleet.Hosts, func(a, c *fleet.Host) int { return cmp.Compare(off(a), off(c)) })
	b.result.kubectl.pods = pods[host.Name]
	from := b.clock.Now()
	_, err = b.fleet.Cluster.Kubectl(ctx, nil, "--kubeconfig="+kubeconfig, "drain", host.Name, "--ignore-daemonsets", "--delete-emptydir-data")
	if err != nil {
		return err
	}
	b.result.kubectl.took = b.clock.Since(from)
	requests, err := b.fleet.Cluster.Requests(from, b.clock.Now())
	b.result.kubectl.requests = len(slices.DeleteFunc(requests, func(r embedded.Request) bool { return r.User != drainer }))
	return err
}

func (b *bench) asked(from time.Time) (fleet.Asked, error) {
	requests, err := b.fleet.Cluster.Requests(from, b.clock.Now())
	return fleet.Account(requests), err
}
