// Package simulation runs the operator through weeks of faults in virtual time. Two managers and an
// agent for each node, with the shipped code, run in a bubble of testing/synctest on top of an API
// server in memory. The faults are drawn from a seed. A package that shares no decisions with the
// operator judges the result.
package simulation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/judge/definition"
	"github.com/reboot-operator/reboot-operator/hack/machine"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// World is a cluster that plays a script.
type World struct {
	script Script
	folder string
	scheme *runtime.Scheme
	store  *apiserver.Store
	counts *process.Counts
	lease  *lease
	// calm means that the faults have ended.
	calm atomic.Bool
	// outages counts the present outages of the API server.
	outages atomic.Int32

	ctx      context.Context //nolint:containedctx // it is as long as the world
	running  sync.WaitGroup
	hosts    []*host
	replicas []*replica

	mu    sync.Mutex
	lives map[string]int
	errs  []error
	// stripped are the Nodes that get no grants.
	stripped map[string]bool

	// judging has its own lock, because the store calls the judge.
	judging  sync.Mutex
	judge    *judge.Judge
	onRecord func(judge.Change)
	reboots  int
}

// Result is the result of a world.
type Result struct {
	Violations []judge.Violation
	// Reboots counts the reboots that logind performed.
	Reboots int
	// Lasted is the virtual time that passed.
	Lasted time.Duration
	// Faults counts the faults by kind.
	Faults map[string]int
}

// Run plays a script in a bubble of testing/synctest. The folder is for the files of the hosts.
// record, if not nil, receives every change.
func Run(ctx context.Context, script Script, folder string, record func(judge.Change)) (Result, error) {
	process.Wait(ctx, script.Begins)
	w, end, err := newWorld(ctx, script, folder, record)
	if err != nil {
		return Result{}, err
	}
	began := time.Now()
	w.begin()
	injector{w}.perform()
	remaining := w.settle()
	w.judging.Lock()
	w.judge.End(time.Now(), remaining...)
	w.judging.Unlock()
	result := Result{
		Violations: w.judge.Violations(), Reboots: w.reboots, Faults: w.counts.All(),
		Lasted: time.Since(began),
	}
	end()
	w.running.Wait()
	return result, errors.Join(w.errs...)
}

func newWorld(ctx context.Context, script Script, folder string, record func(judge.Change)) (*World, func(), error) {
	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, nil, err
	}
	policies, err := definition.Shipped()
	if err != nil {
		return nil, nil, err
	}
	ctx, end := context.WithCancel(ctx)
	w := &World{
		script: script, folder: folder, scheme: scheme, counts: &process.Counts{}, lease: newLease(), ctx: ctx,
		lives: map[string]int{}, stripped: map[string]bool{}, judge: judge.New(judge.Options{TrueClocks: true}), onRecord: record,
	}
	w.store = apiserver.New(policies, w.witness)
	w.store.Mutate(w.mutate)
	return w, end, nil
}

// Go runs a function that the world waits for at its end.
func (w *World) Go(f func()) { w.running.Go(f) }

func (w *World) random(names ...string) *process.Random {
	return process.NewRandom(w.script.Seed, names...)
}

// start starts the next run of a program.
func (w *World) start(ctx context.Context, name string) *process.Process {
	w.mu.Lock()
	w.lives[name]++
	life := strconv.Itoa(w.lives[name])
	w.mu.Unlock()
	return process.Start(ctx, name, func(party string) *process.Random { return w.random(name, life, party) }, w.store, w.conditions, w.counts)
}

// conditions returns the current conditions of requests: foul until the faults end, fair
// afterwards.
func (w *World) conditions() process.Conditions {
	now := w.script.Foul
	if w.calm.Load() {
		now = fair
	}
	now.Down = w.outages.Load() > 0
	return now
}

// must records an error that must not happen.
func (w *World) must(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err) // errors.Join ignores nil
}

// begin creates the objects and starts everything.
func (w *World) begin() {
	for _, policy := range w.script.Policies {
		w.makePolicy(policy)
	}
	for _, script := range w.script.Nodes {
		h := newHost(w, script)
		w.hosts = append(w.hosts, h)
		w.register(h)
		w.must(h.boot())
	}
	for i := range managers {
		r := newReplica(w, i)
		w.replicas = append(w.replicas, r)
		w.Go(func() { r.run(w.ctx, r.name, r.runManager) })
	}
}

// witness receives every revision.
func (w *World) witness(e apiserver.Event) {
	object, gone := e.After, e.After == nil
	if gone {
		object = e.Before
	}
	record := judge.ChangeOf(object, time.Now(), gone)
	record.By = e.By
	w.record(record)
}

func (w *World) record(r judge.Change) {
	w.judging.Lock()
	defer w.judging.Unlock()
	if r.Host == judge.Rebooted {
		w.reboots++
	}
	w.judge.Take(r)
	if w.onRecord != nil {
		w.onRecord(r)
	}
}

// makePolicy creates a copy of a policy with a new UID.
func (w *World) makePolicy(as *v1alpha1.RebootPolicy) {
	made := as.DeepCopy()
	made.UID, made.CreationTimestamp = w.uid("policy", as.Name), metav1.Now().Rfc3339Copy()
	w.must(w.store.Create(made, judge.Admin))
}

// register creates the Node of a host, unless it exists.
func (w *World) register(h *host) {
	if _, ok := apiserver.Read[*corev1.Node](w.store, h.name); ok {
		return
	}
	w.must(w.store.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: h.name, UID: w.uid("node", h.name), Labels: h.labels, CreationTimestamp: metav1.NewTime(h.Clock.Now()).Rfc3339Copy(),
	}}, machine.Kubelet))
}

// uid returns a new UID.
func (w *World) uid(kind, name string) types.UID {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lives[kind+" "+name]++
	return types.UID(fmt.Sprintf("uid-%d-of-%s-%s", w.lives[kind+" "+name], kind, name))
}

// program restarts its process whenever that ends.
type program struct {
	world  *World
	name   string
	random *process.Random

	mu      sync.Mutex
	process *process.Process
}

// run runs the program again and again until ctx ends.
func (p *program) run(ctx context.Context, name string, live func(*process.Process)) {
	for ctx.Err() == nil {
		life := p.world.start(ctx, name)
		p.mu.Lock()
		p.process = life
		p.mu.Unlock()
		live(life)
		process.Wait(ctx, p.random.Between(time.Second, time.Minute))
	}
}

// now returns the running process, or nil.
func (p *program) now() *process.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil || !p.process.Alive() {
		return nil
	}
	return p.process
}

// kill kills the process. It returns false if none runs.
func (p *program) kill() bool {
	life := p.now()
	if life == nil {
		return false
	}
	life.Kill()
	return true
}
