package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"golang.org/x/sync/errgroup"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

const (
	// managers is how many replicas of the manager config/manager asks for.
	managers = 2
	// readyPoll is how often the fleet looks whether it is ready.
	readyPoll = 50 * time.Millisecond
	// patience is how long anything may take that takes a second on an idle machine.
	patience = 2 * time.Minute
)

// Options says what fleet to simulate.
type Options struct {
	// Nodes is how many machines there are.
	Nodes int
	// Workload is a manifest of what runs on them besides the operator.
	Workload []byte
	// RebootDuration is how long a machine is down.
	RebootDuration time.Duration
	// Step runs one named step of the start, and may tell how it goes. Nil: just runs it.
	Step func(name string, run func() error) error
}

// Fleet is a number of machines, and the operator on them.
type Fleet struct {
	// Cluster is where they live.
	Cluster *embedded.Cluster
	// Hosts are the machines, by number.
	Hosts []*Host
	// Recorder has the timeline of all nodes.
	Recorder *Recorder

	kubelet *kubelet
	cancel  context.CancelFunc
	reboots sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

// Start builds the operator's programs, starts a cluster and a fleet in it, and returns when every agent reports. When it
// fails half-way, everything it started is gone.
func Start(ctx context.Context, o Options) (*Fleet, error) {
	if o.Step == nil {
		o.Step = func(_ string, run func() error) error { return run() }
	}
	life, cancel := context.WithCancel(ctx)
	f := &Fleet{cancel: cancel}
	err := f.start(life, o)
	if err == nil {
		return f, nil
	}
	if f.Cluster != nil {
		f.Cluster.KeepFiles = true
		err = fmt.Errorf("%w\nlogs are in %s", err, f.Cluster.Dir)
	}
	f.Stop()
	return nil, err
}

func (f *Fleet) start(ctx context.Context, o Options) error {
	var programs string
	err := o.Step("manager and agent, built", func() (err error) {
		programs, err = build(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if f.Cluster, err = embedded.Start(ctx, embedded.Options{Step: o.Step}); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{fmt.Sprintf("%d nodes, each with a D-Bus of its own", o.Nodes), func() error { return f.startHosts(ctx, o) }},
		{"config/default and the workload", func() error { return f.apply(ctx, o, programs) }},
		{fmt.Sprintf("%d managers, %d agents", managers, o.Nodes), func() error { return f.awaitPrograms(ctx) }},
		{"every pod runs, every agent reports", func() error { return f.awaitRest(ctx) }},
	} {
		if err := o.Step(step.name, step.run); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) startHosts(ctx context.Context, o Options) error {
	names := Names(o.Nodes)
	f.Hosts = make([]*Host, o.Nodes)
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		group.Go(func() (err error) {
			if err := f.Cluster.AddNode(ctx, name, nil); err != nil {
				return err
			}
			f.Hosts[i], err = newHost(ctx, f.Cluster, f.Cluster.Dir, name)
			return err
		})
	}
	return group.Wait()
}

// Names are the names of so many nodes: in the order of numbers and of letters alike.
func Names(n int) []string {
	width := len(fmt.Sprint(n))
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("node-%0*d", width, i+1)
	}
	return names
}

// apply brings the pods, and everything that makes them run: kubelet and reboots.
func (f *Fleet) apply(ctx context.Context, o Options, programs string) error {
	var err error
	if f.Recorder, err = Record(ctx, f.Cluster.Client()); err != nil {
		return err
	}
	f.kubelet = &kubelet{
		cluster: f.Cluster, programs: programs, hosts: map[string]*Host{}, fail: f.fail,
		pods: map[types.UID]context.CancelFunc{}, processes: map[types.UID]*process.Process{},
	}
	for _, h := range f.Hosts {
		f.kubelet.hosts[h.Name] = h
		h.onReboot(func() {
			f.reboots.Go(func() {
				if err := h.reboot(ctx, o.RebootDuration); err != nil && ctx.Err() == nil {
					f.fail(fmt.Errorf("rebooting %s: %w", h.Name, err))
				}
			})
		})
	}
	if err := f.kubelet.watch(ctx); err != nil {
		return err
	}
	if err := f.Cluster.Apply(ctx, filepath.Join(testenv.Root(), "config", "default")); err != nil {
		return err
	}
	return f.Cluster.ApplyManifest(ctx, o.Workload)
}

func (f *Fleet) awaitPrograms(ctx context.Context) error {
	return f.Await(ctx, "the managers and agents to start", func() bool {
		return len(f.kubelet.of(managerProgram)) == managers && len(f.kubelet.of(agentProgram)) == len(f.Hosts)
	})
}

func (f *Fleet) awaitRest(ctx context.Context) error {
	err := f.Await(ctx, "every agent to report", func() bool {
		return f.all(func(v timeline.View) bool { return v.Reports })
	})
	if err != nil {
		return err
	}
	_, err = f.Cluster.Kubectl(ctx, nil, "wait", "deployment", "--all", "--all-namespaces", "--for=condition=Available", "--timeout=60s")
	return err
}

// Await waits until something is true, for two minutes, and gives up when anything of the fleet has failed.
func (f *Fleet) Await(ctx context.Context, what string, ready func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, readyPoll, true, func(context.Context) (bool, error) {
		return ready(), f.Err()
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}

// all tells whether something is true of every node.
func (f *Fleet) all(is func(timeline.View) bool) bool {
	ok := false
	f.Recorder.Read(func(line *timeline.Timeline) {
		views := line.Views()
		ok = len(views) == len(f.Hosts) && !slices.ContainsFunc(views, func(v timeline.View) bool { return !is(v) })
	})
	return ok
}

// SendNeedReboot broadcasts on every machine's bus what `locksmithctl send-need-reboot` does.
func (f *Fleet) SendNeedReboot() error {
	for _, h := range f.Hosts {
		if err := h.Bus.SendNeedReboot(); err != nil {
			return fmt.Errorf("on %s: %w", h.Name, err)
		}
	}
	return nil
}

// Workload counts the pods on each node, the operator's left out.
func (f *Fleet) Workload() map[string]int { return f.kubelet.workload() }

// Managers are the running managers' processes.
func (f *Fleet) Managers() []*process.Process { return f.kubelet.of(managerProgram) }

// Agents are the running agents' processes.
func (f *Fleet) Agents() []*process.Process { return f.kubelet.of(agentProgram) }

func (f *Fleet) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, err)
}

// Err is what went wrong so far: a program of the operator that ends again and again, a machine that cannot be
// simulated, a program of the cluster that has ended.
func (f *Fleet) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(errors.Join(f.errs...), f.Cluster.Err())
}

// Stop ends everything, the cluster too, and returns when all processes are gone.
func (f *Fleet) Stop() {
	f.cancel()
	if f.kubelet != nil {
		f.kubelet.wait()
	}
	f.reboots.Wait()
	for _, h := range f.Hosts {
		if h != nil && h.Bus != nil {
			// A daemon that has ended already is what is wanted.
			_ = h.Bus.Stop()
		}
	}
	if f.Cluster != nil {
		f.Cluster.Stop()
	}
}
