// Package fleet is simulated machines that run the operator for real, on an embedded cluster.
//
// Each machine has a private D-Bus and a root folder, and on these a fake logind and a fake of its update engine. The pods of the
// manifests are run as processes, as a kubelet runs containers. They run on the machine they are scheduled to, with a token bound to
// the pod, until the pod goes. When an agent asks logind for a reboot, every process on its machine is killed. The node's heartbeats
// stop, and it comes back on a new boot ID. Everything else (pods of other workloads) is kwok's, but for the namespaces of Options.Run.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/judge/feed"
)

// patience is how long anything may take that takes a second on an idle machine.
const patience = 2 * time.Minute

// Options states what fleet to simulate.
type Options struct {
	// Nodes is how many machines there are.
	Nodes int
	// Engines are what their updates come by: the first machine has the first, and so on, round and round. None: DefaultEngine for all.
	Engines []Engine
	// Components are folders of config/components that are added to the manifests.
	Components []string
	// Manifests is the kustomization that is installed. Empty: the one of this checkout that fits the
	// API server.
	Manifests string
	// Checkouts have the programs of images with other tags than the released one, by tag.
	Checkouts map[string]string
	// Workload is a manifest of what runs on them besides the operator.
	Workload []byte
	// Run are the namespaces of the workload whose pods run as processes too: their containers' commands, on this machine.
	// Nil: none, pods of the workload only look as if they ran.
	Run []string
	// Metrics: the managers and agents serve them, as their manifests specify; MetricsTargets reports where.
	Metrics bool
	// RebootDuration is how long a machine is down.
	RebootDuration time.Duration
	// Step runs one named step of the start, and may report how it goes. Nil: just runs it.
	Step func(name string, run func() error) error
}

// Fleet is a number of machines, and the operator on them.
type Fleet struct {
	// Cluster is where they live.
	Cluster *embedded.Cluster
	// Client is the administrator's.
	Client client.WithWatch
	// Hosts are the machines, by number.
	Hosts []*Host
	// Recorder has the timeline of all nodes.
	Recorder *Recorder

	kubelet *kubelet
	cancel  context.CancelFunc
	// background are the reboots that go on until cancel.
	background sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

// Start builds the operator's programs, starts a cluster and a fleet in it, and returns when every agent reports. When it
// fails half-way, everything it started is gone.
func Start(ctx context.Context, o Options) (*Fleet, error) {
	if len(o.Engines) == 0 {
		o.Engines = engines()[:1]
	}
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
		err = fmt.Errorf("%w\nlogs are in %s", err, f.Cluster.KeepLogs())
	}
	f.Stop()
	return nil, err
}

// Await waits until something is true, for two minutes, and gives up when anything of the fleet has failed.
func (f *Fleet) Await(ctx context.Context, what string, ready func() bool) error {
	return embedded.Await(ctx, what, patience, f.Err, func(context.Context) bool { return ready() })
}

// all reports whether something is true of every node.
func (f *Fleet) all(is func(timeline.View) bool) bool {
	views := f.Recorder.Read().Views
	return len(views) == len(f.Hosts) && !slices.ContainsFunc(views, func(v timeline.View) bool { return !is(v) })
}

// Stage brings every machine an update that waits for a reboot.
func (f *Fleet) Stage() error {
	for _, h := range f.Hosts {
		if err := h.Stage(); err != nil {
			return err
		}
	}
	return nil
}

// Judge is what the judge finds in all that has happened so far, or that no attempt was seen.
func (f *Fleet) Judge(ctx context.Context) error {
	history, err := f.Recorder.Feed.Await(ctx)
	if err != nil {
		return err
	}
	j := judge.New(judge.Options{TrueClocks: true})
	attempts := 0
	for _, r := range history {
		j.Take(r)
		if r.Node != nil && r.Node.Annotations[v1alpha1.AnnotationProgress] != "" {
			attempts++
		}
	}
	if attempts == 0 {
		return errors.New("the witness has seen no attempt")
	}
	var found []error
	for _, v := range j.Violations() {
		found = append(found, errors.New(v.String()))
	}
	return errors.Join(found...)
}

// Managers are the running managers' processes.
func (f *Fleet) Managers() []*process.Process { return f.kubelet.of(managerProgram) }

// Agents are the running agents' processes.
func (f *Fleet) Agents() []*process.Process { return f.kubelet.of(agentProgram) }

func (f *Fleet) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, err)
}

// Err is what went wrong so far. It is a program of the operator that ends again and again, a machine that cannot be simulated, or a
// program of the cluster that has ended.
func (f *Fleet) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(errors.Join(f.errs...), f.Cluster.Err())
}

// Stop ends everything, and returns when all processes are gone.
func (f *Fleet) Stop() {
	f.cancel()
	if f.kubelet != nil {
		f.kubelet.wait()
	}
	f.background.Wait()
	for _, h := range f.Hosts {
		if h != nil && h.Zincati != nil {
			h.Zincati.Kill()
		}
		if h != nil && h.Bus != nil {
			// A daemon that has ended already is what is wanted.
			_ = h.Bus.Stop()
		}
	}
	if f.Cluster != nil {
		f.Cluster.Stop()
	}
}

// Recorder is the timeline of the Nodes of a feed. It has every revision, which an informer's cache would not.
type Recorder struct {
	Feed *feed.Feed

	mu   sync.Mutex
	line timeline.Timeline
	read int
}

// Read is what has happened so far.
func (r *Recorder) Read() timeline.Story {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.Feed.Since(r.read) {
		r.read++
		if c.Node != nil && !c.Gone {
			r.line.Observe(c.At, c.Node)
		}
	}
	return r.line.Story()
}
