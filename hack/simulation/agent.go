package simulation

import (
	"context"
	"errors"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/agent/reboot"
	"github.com/reboot-operator/reboot-operator/hack/machine"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// noHostRoot is a path that cannot exist, rejected without a system call. Labels of the operating
// system are not simulated.
const noHostRoot = "\x00"

// runAgent does the same as reboot.Assembly.New, with a simulated host and API server.
func (h *host) runAgent(p *process.Process) {
	w := h.world
	of := apiserver.Key{Kind: apiserver.Nodes, Name: h.name}
	cache := process.NewCache(p, map[apiserver.Key]toolscache.TransformFunc{of: reboot.TrimNode})
	shell := process.NewShell(p, w.scheme, cache)
	pods := &pods{world: w, host: h, agent: p, random: w.random("pods", h.name, p.Name)}
	r := reboot.New(reboot.Config{
		Node: h.name,
		Host: reboot.Host{
			BootIDFile: h.BootIDFile(), UptimeFile: h.UptimeFile(), Root: noHostRoot, Logind: h.logind(p), Coordinators: machine.Alone{},
		},
		Client: process.NewClient(p, cache, false), Live: process.NewLive(p, "live"),
		Policies: policies{process.NewLive(p, "policies"), process.NewLive(p, "lookout")},
		Drainer:  func(string) reboot.Drainer { return pods }, Looker: pods, Engines: []string{machine.Engine},
		Recorder: &events.FakeRecorder{}, Clock: &h.Clock,
	})
	options := controller.Options{NewQueue: process.NewQueue(process.Pace{Patience: w.script.Patience})}
	if err := r.SetupWithManager(p.Context, shell, options); err != nil {
		w.must(err)
		return
	}
	w.Go(func() {
		if process.Wait(p.Context, h.random.Between(0, 5*time.Second)) {
			h.Listen(r.Reports)
		}
	})
	shell.Run(p.Context, nil)
}

// policies are read by the reconciler and by goroutines next to it. Each has its own line, so that
// its random numbers are reproducible.
type policies struct {
	client.Reader

	beside client.Reader
}

// Get implements client.Reader.
func (p policies) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if controller.ReconcileIDFromContext(ctx) == "" {
		return p.beside.Get(ctx, key, object, options...)
	}
	return p.Reader.Get(ctx, key, object, options...)
}

// pods plays the pods of a node as its agent sees them: they take a while to leave.
type pods struct {
	world  *World
	host   *host
	agent  *process.Process
	random *process.Random
}

// Drain implements reboot.Drainer. Sometimes it fails, may evict nothing, or never ends. It waits
// while the budget is closed.
func (p *pods) Drain(ctx context.Context, _ string, _ drain.PodRules, report func(drain.Status)) error {
	report(drain.Status{Remaining: 1})
	takes, stuck := p.random.Between(0, p.world.script.Drain), !p.world.calm.Load() && p.random.Chance(p.world.script.Stuck)
	if stuck && p.random.Chance(0.3) {
		return &drain.UndrainableError{Pods: []drain.Pod{{Namespace: "default", Name: "kept", Message: "it has no controller"}}}
	}
	if stuck && p.random.Chance(0.3) {
		process.Wait(ctx, takes)
		return errors.New("the watch of pods ended")
	}
	if stuck {
		<-ctx.Done()
	}
	if !process.Wait(ctx, takes) || !p.host.budget.await(ctx) || !p.agent.Pass() {
		return context.Cause(ctx)
	}
	return nil
}

// EvictLeft implements reboot.Drainer. No pods have come back.
func (p *pods) EvictLeft(context.Context, string, drain.PodRules) ([]drain.Pod, error) {
	return nil, nil
}

// Look implements reboot.Looker. It finds nothing but a closed budget.
func (p *pods) Look(context.Context, string, drain.PodRules) (drain.Findings, error) {
	found, _ := p.host.budget.look()
	return found, nil
}

// Follow implements reboot.Looker.
func (p *pods) Follow(ctx context.Context, _ string, _ drain.PodRules, report func(drain.Findings)) error {
	for ctx.Err() == nil {
		found, changed := p.host.budget.look()
		report(found)
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
