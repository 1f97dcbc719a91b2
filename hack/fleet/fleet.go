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
)

// Options says what fleet to simulate.
type Options struct {
	// Cluster is where it lives. Required.
	Cluster *embedded.Cluster
	// Nodes is how many machines there are.
	Nodes int
	// Workload is a manifest of what runs on them besides the operator.
	Workload []byte
	// Programs is the folder with the operator's programs: manager and agent.
	Programs string
	// RebootDuration is how long a machine is down.
	RebootDuration time.Duration
	// Step runs one named step of the start, and may tell how it goes. Nil: just runs it.
	Step func(name string, run func() error) error
}

// Fleet is a number of machines, and the operator on them.
type Fleet struct {
	// Hosts are the machines, by number.
	Hosts []*Host
	// Recorder has the timeline of all nodes.
	Recorder *Recorder

	cluster *embedded.Cluster
	kubelet *kubelet
	cancel  context.CancelFunc
	reboots sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

// Start starts a fleet and returns when all agents report. When it fails half-way, everything it started is gone but the
// cluster and what is in it.
func Start(ctx context.Context, o Options) (*Fleet, error) {
	if o.Step == nil {
		o.Step = func(_ string, run func() error) error { return run() }
	}
	life, cancel := context.WithCancel(ctx)
	f := &Fleet{cluster: o.Cluster, cancel: cancel}
	if err := f.start(life, o); err != nil {
		f.Stop()
		return nil, err
	}
	return f, nil
}

func (f *Fleet) start(ctx context.Context, o Options) error {
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{fmt.Sprintf("%d nodes, each with a D-Bus of its own", o.Nodes), func() error { return f.startHosts(ctx, o) }},
		{"config/default and the workload", func() error { return f.apply(ctx, o) }},
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
			if err := f.cluster.AddNode(ctx, name, nil); err != nil {
				return err
			}
			f.Hosts[i], err = newHost(ctx, f.cluster, f.cluster.Dir, name)
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
func (f *Fleet) apply(ctx context.Context, o Options) error {
	var err error
	if f.Recorder, err = Record(ctx, f.cluster.Client()); err != nil {
		return err
	}
	f.kubelet = &kubelet{
		cluster: f.cluster, programs: o.Programs, hosts: map[string]*Host{}, fail: f.fail,
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
	if err := f.cluster.Apply(ctx, filepath.Join(testenv.Root(), "config", "default")); err != nil {
		return err
	}
	return f.cluster.ApplyManifest(ctx, o.Workload)
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
	_, err = f.cluster.Kubectl(ctx, nil, "wait", "deployment", "--all", "--all-namespaces", "--for=condition=Available", "--timeout=60s")
	return err
}

// Await waits until something is true, and gives up when anything of the fleet has failed.
func (f *Fleet) Await(ctx context.Context, what string, ready func() bool) error {
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
	return errors.Join(errors.Join(f.errs...), f.cluster.Err())
}

// Stop ends the operator's programs and the buses, and returns when they are gone.
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
}
