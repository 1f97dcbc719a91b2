// Package fleet runs the real operator on simulated machines of an embedded cluster.
//
// Each machine has its own D-Bus, a root folder, a fake logind and a fake update engine. The pods
// of the manifests run as processes, as a kubelet runs containers: on the machine to which they are
// scheduled, with a token bound to the pod, until the pod is deleted. When an agent calls logind
// for a reboot, every process on its machine is killed, the node's heartbeats stop, and it comes
// back with a new boot ID. kwok simulates everything else, such as the pods of other workloads,
// except in the namespaces of Options.Run.
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

// patience is the timeout for operations that take a second on an idle machine.
const patience = 2 * time.Minute

// Options describes the fleet to simulate.
type Options struct {
	// Nodes is the number of machines.
	Nodes int
	// Engines lists the update engines, which the machines use in turn. If empty, all use
	// DefaultEngine.
	Engines []Engine
	// Components lists folders of config/components to add to the manifests.
	Components []string
	// Manifests is the kustomization to install. If empty, it is the one of this checkout that fits
	// the API server.
	Manifests string
	// Checkouts maps image tags other than the released one to the checkouts with their programs.
	Checkouts map[string]string
	// Workload is a manifest of pods that run besides the operator. If it is empty, only the operator runs.
	Workload []byte
	// Run lists the namespaces of the workload whose pods also run as processes, with their
	// containers' commands on this machine. All other pods only look as if they ran.
	Run []string
	// Metrics makes the managers and agents serve metrics as in their manifests. MetricsTargets
	// returns the addresses.
	Metrics bool
	// RebootDuration is the time that a machine is down.
	RebootDuration time.Duration
	// Step runs one named step of the start and may report its progress. If nil, steps just run.
	Step func(name string, run func() error) error
}

// Fleet is a number of machines with the operator.
type Fleet struct {
	// Cluster is the embedded cluster.
	Cluster *embedded.Cluster
	// Client is a client of an administrator.
	Client client.WithWatch
	// Hosts holds the machines, by number.
	Hosts []*Host
	// Recorder records the timeline of all nodes.
	Recorder *Recorder

	kubelet *kubelet
	cancel  context.CancelFunc
	// background counts running reboots. cancel ends them.
	background sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

// Start builds the operator's programs, starts a cluster with a fleet, and waits until every agent
// reports. If it fails, it stops everything it started.
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

// Await waits up to two minutes until something is true. It gives up if a part of the fleet has
// failed.
func (f *Fleet) Await(ctx context.Context, description string, ready func() bool) error {
	return embedded.Await(ctx, description, patience, f.Err, func(context.Context) bool { return ready() })
}

// all reports whether a condition holds for every node.
func (f *Fleet) all(holds func(timeline.View) bool) bool {
	views := f.Recorder.Read().Views
	return len(views) == len(f.Hosts) && !slices.ContainsFunc(views, func(v timeline.View) bool { return !holds(v) })
}

// Stage stages an update on every machine.
func (f *Fleet) Stage() error {
	for _, h := range f.Hosts {
		if err := h.Stage(); err != nil {
			return err
		}
	}
	return nil
}

// Judge returns the violations so far, or an error if nothing was rebooted.
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

// Managers returns the processes of the running managers.
func (f *Fleet) Managers() []*process.Process { return f.kubelet.of(managerProgram) }

// Agents returns the processes of the running agents.
func (f *Fleet) Agents() []*process.Process { return f.kubelet.of(agentProgram) }

func (f *Fleet) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, err)
}

// Err returns what has failed so far: a program of the operator that ends repeatedly, a machine
// that cannot be simulated, or a program of the cluster that has ended.
func (f *Fleet) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(errors.Join(f.errs...), f.Cluster.Err())
}

// Stop stops everything, and waits until all processes have ended.
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
			// It does not matter if the daemon has ended already.
			_ = h.Bus.Stop()
		}
	}
	if f.Cluster != nil {
		f.Cluster.Stop()
	}
}

// Recorder records the timeline of the Nodes in a feed. It has every revision, unlike an informer's
// cache.
type Recorder struct {
	Feed *feed.Feed

	mu   sync.Mutex
	line timeline.Timeline
	read int
}

// Read returns everything that has happened so far.
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
