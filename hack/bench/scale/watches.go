package scale

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// watchOptions are the flags of the part that measures the agents' watches.
type watchOptions struct {
	agents  int
	rest    time.Duration
	changes int
	settle  time.Duration
}

// NewWatches is the part that measures what the agents' watches cost the API server.
func NewWatches(flags *flag.FlagSet) figures.Part {
	o := &watchOptions{settle: settle}
	flags.IntVar(&o.agents, "watches-agents", 3000, "How many agents watch, each its own node.")
	flags.DurationVar(&o.rest, "watches-rest", 30*time.Second, "How long to watch the API server at rest, three times.")
	flags.IntVar(&o.changes, "watches-changes", 100, "How many times to change a policy.")
	return figures.Part{
		Name: "watches", About: "what the watches of thousands of agents cost the API server",
		Run: func(ctx context.Context, screen *terminal.Terminal) (figures.Result, error) {
			var stages []stage
			err := inLab(ctx, screen.Step, func(l *lab) (err error) {
				stages, err = o.measure(ctx, l, screen.Step)
				return err
			})
			return watchReport(o, stages), err
		},
	}
}

// stage is what the API server needs while so many watches are open.
type stage struct {
	name string
	// opening is the CPU time for the watches that this stage has opened, with a connection for each; reopening is that for the
	// same watches over the connections that stand.
	opening, reopening time.Duration
	// held is what it holds in heap and stacks after a garbage collection, and memory what the kernel counts.
	held   int64
	memory process.Memory
	// cpu is what it uses in a minute of heartbeats alone, and change for one change of a policy on top of that.
	cpu, change time.Duration
	// beats is how many heartbeats there were each second, and received how many changes the watches of this stage brought in a minute.
	beats    float64
	received int64
}

// watched measures the API server of a lab, stage after stage.
type watched struct {
	options *watchOptions
	lab     *lab
	server  *process.Process
	beats   *kubelets
	agents  *crowd
	fail    context.CancelCauseFunc
}

func (o *watchOptions) measure(ctx context.Context, l *lab, step stepper) ([]stage, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	w := &watched{options: o, lab: l, server: l.cluster.Program("kube-apiserver"), beats: &kubelets{fail: fail}, fail: fail}
	if err := step(fmt.Sprintf("%d nodes", o.agents), func() error { return w.prepare(ctx) }); err != nil {
		return nil, err
	}
	stages := []stage{{name: "none"}, {name: "kubelets"}, {name: "kubelets and agents"}}
	for i := range stages {
		s := &stages[i]
		err := step("watches of "+s.name, func() error {
			if i > 0 {
				if err := w.open(ctx, s); err != nil {
					return err
				}
			}
			return w.look(ctx, s)
		})
		if err != nil {
			return nil, cmp.Or(context.Cause(ctx), err)
		}
	}
	return stages, context.Cause(ctx)
}

func (w *watched) prepare(ctx context.Context) error {
	if err := w.lab.createPolicy(ctx, 1); err != nil {
		return err
	}
	if err := w.lab.populate(ctx, w.options.agents, 0); err != nil {
		return err
	}
	go w.beats.run(ctx, w.lab)
	return nil
}

// open opens one watch for each node, twice: the second time over the connections of the first.
func (w *watched) open(ctx context.Context, s *stage) error {
	c, err := newCrowd(w.lab, s.name, w.fail)
	if err != nil {
		return err
	}
	w.agents = c
	first, end := context.WithCancel(ctx)
	defer end()
	if s.opening, err = w.spent(func() error { return c.open(first) }); err != nil {
		return err
	}
	end()
	// The API server notices within moments that the watches have ended; what that costs belongs to neither.
	if err := w.lab.pause(ctx, w.options.settle/5); err != nil {
		return err
	}
	s.reopening, err = w.spent(func() error { return c.open(ctx) })
	return err
}

// look measures one stage.
func (w *watched) look(ctx context.Context, s *stage) error {
	if err := w.lab.pause(ctx, w.options.settle); err != nil {
		return err
	}
	var err error
	if s.held, err = w.collect(ctx); err != nil {
		return err
	}
	beaten, received := w.beats.written.Load(), w.received()
	used, err := w.spent(func() error { return w.lab.pause(ctx, w.options.rest) })
	if err != nil {
		return err
	}
	minutes := w.options.rest.Minutes()
	s.cpu = time.Duration(float64(used) / minutes)
	s.beats = float64(w.beats.written.Load()-beaten) / (minutes * 60)
	s.received = int64(float64(w.received()-received) / minutes)
	if s.memory, err = w.server.Memory(); err != nil {
		return err
	}
	from := w.lab.clock.Now()
	if used, err = w.spent(func() error { return w.changePolicy(ctx) }); err != nil {
		return err
	}
	quiet := time.Duration(float64(s.cpu) * w.lab.clock.Since(from).Minutes())
	s.change = max(0, used-quiet) / time.Duration(max(1, w.options.changes))
	return nil
}

// received is how many changes those were notified of who opened their watches last.
func (w *watched) received() int64 {
	if w.agents == nil {
		return 0
	}
	return w.agents.events.Load()
}

// spent is the API server's CPU time while something runs.
func (w *watched) spent(run func() error) (time.Duration, error) {
	before, err := w.server.CPU()
	if err != nil {
		return 0, err
	}
	if err := run(); err != nil {
		return 0, err
	}
	after, err := w.server.CPU()
	return after - before, err
}

// changePolicy changes the policy's spec again and again.
func (w *watched) changePolicy(ctx context.Context) error {
	for i := range w.options.changes {
		patch := encode(map[string]any{"spec": map[string]any{"priority": i}})
		policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName}}
		if err := w.lab.policies.Patch(ctx, policy, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			return fmt.Errorf("changing policy %s: %w", policyName, err)
		}
	}
	return nil
}

// collect has the API server collect its garbage, and reports what it holds after that.
func (w *watched) collect(ctx context.Context) (int64, error) {
	profile, err := w.lab.kube.Discovery().RESTClient().Get().AbsPath("/debug/pprof/heap").Param("gc", "1").Param("debug", "1").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("asking the API server for its heap: %w", err)
	}
	return parseHeld(profile)
}
