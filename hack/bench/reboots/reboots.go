// Package reboots is the part of the benchmark that measures a rolling reboot, one node at a time:
// the time beyond drains and reboots, the requests to the API server, and memory. Before that it
// measures the agents at rest.
package reboots

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

const (
	// nodes is the number of nodes, pods the number of pods on each, and down the time that a
	// machine is down.
	nodes, pods = 10, 20
	down        = 5 * time.Second
	// sample is the interval at which memory and the end of the reboots are checked.
	sample = 200 * time.Millisecond
	// patience is the time that each reboot may take beyond the time that the machine is down.
	patience = time.Minute
)

// bench is one run.
type bench struct {
	screen *terminal.Terminal
	fleet  *fleet.Fleet
	nodes  int
	result result
}

// Part is this part of the benchmark.
var Part = figures.Part{
	Name: "reboots", About: "a rolling reboot, one node at a time, and the agents at rest before: overhead, API requests, memory, time from D-Bus signal to condition",
	Run: func(ctx context.Context, screen *terminal.Terminal) (figures.Result, error) {
		b := &bench{screen: screen, nodes: nodes}
		err := b.run(ctx)
		return report(b.result), err
	},
}

func (b *bench) run(ctx context.Context) (err error) {
	b.fleet, err = fleet.Start(ctx, fleet.Options{
		Nodes: nodes, Workload: workload(), RebootDuration: down, Step: b.screen.Step,
	})
	if err != nil {
		return err
	}
	defer b.fleet.Stop()
	policy, err := b.fleet.ApplyPolicy(ctx, func(spec *v1alpha1.RebootPolicySpec) {
		one := intstr.FromInt32(1)
		spec.Concurrency, spec.Reboot = &v1alpha1.Concurrency{MaxUnavailable: &one}, &v1alpha1.Reboot{Settle: &v1alpha1.Duration{}}
	})
	if err != nil {
		return err
	}
	if err := b.rest(ctx, policy); err != nil {
		return err
	}
	name := fmt.Sprintf("%d nodes of %d pods rebooted, one at a time", nodes, pods)
	if err := b.screen.Step(name, func() error { return b.reboot(ctx, policy) }); err != nil {
		return err
	}
	return b.fleet.Judge(ctx)
}

// reboot reboots every node once, and measures the programs' memory during that time.
func (b *bench) reboot(ctx context.Context, policy *fleet.Policy) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(b.nodes)*(down+patience))
	defer cancel()
	from := time.Now()
	if err := b.fleet.Stage(); err != nil {
		return err
	}
	err := wait.PollUntilContextCancel(ctx, sample, true, func(context.Context) (bool, error) {
		b.result.agentMemory = figures.Largest(b.result.agentMemory, b.fleet.Agents())
		b.result.managerMemory = figures.Largest(b.result.managerMemory, b.fleet.Managers())
		return policy.Finished(ctx), b.fleet.Err()
	})
	if err != nil {
		return err
	}
	changes := b.fleet.Recorder.Read()
	b.result.runs, b.result.peak = changes.Runs, len(changes.Peak)
	for _, run := range b.result.runs {
		b.result.wall = max(b.result.wall, run.Done.Sub(from))
	}
	requests, err := b.fleet.Cluster.Requests(from, time.Now())
	b.result.asked = fleet.Account(requests)
	return err
}

// workload returns a manifest of evenly spread pods in four Deployments, without
// PodDisruptionBudgets.
func workload() []byte {
	const deployments = 4
	var manifest []byte
	for i := range deployments {
		manifest = fmt.Appendf(manifest, `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: load-%[1]d, namespace: default}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: load-%[1]d}}
  template:
    metadata: {labels: {app: load-%[1]d, part: load}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {part: load}}}
      containers: [{name: load, image: example.com/load}]
`, i+1, nodes*pods/deployments)
	}
	return manifest
}
