package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// watchOptions are what is measured of the agents' watches: how many watch, each its own node; for how long; changes of a policy.
type watchOptions struct {
	agents  int
	rest    time.Duration
	changes int
	settle  time.Duration
}

// Watches is the part that measures what the agents' watches cost the API server.
var Watches = figures.Part{
	Name: "watches", About: "what the watches of thousands of agents cost the API server",
	Run: func(ctx context.Context, screen *terminal.Terminal) (figures.Result, error) {
		o := &watchOptions{agents: 3000, rest: 30 * time.Second, changes: 100, settle: settle}
		var stages []stage
		err := inLab(ctx, 1, screen.Step, func(l *lab) (err error) {
			stages, err = o.measure(ctx, l, screen.Step)
			return err
		})
		return watchReport(o, stages), err
	},
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
	// watches are those that were opened last.
	watches *crowd
	fail    context.CancelCauseFunc
}

func (o *watchOptions) measure(ctx context.Context, l *lab, step stepper) ([]stage, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	w := &watched{options: o, lab: l, server: l.cluster.Program("kube-apiserver"), watches: &crowd{}, fail: fail}
	if err := step(fmt.Sprintf("%d nodes", o.agents), func() error { return l.populate(ctx, o.agents, 0) }); err != nil {
		return nil, err
	}
	go func() { fail(l.heartbeats(ctx)) }()
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

// open opens one watch for each node, twice: the second time over the connections of the first.
func (w *watched) open(ctx context.Context, s *stage) (err error) {
	if w.watches, err = newCrowd(w.lab, w.fail); err != nil {
		return err
	}
	first, end := context.WithCancel(ctx)
	defer end()
	if s.opening, err = spent(w.server, func() error { return w.watches.open(first) }); err != nil {
		return err
	}
	end()
	// The API server notices within moments that the watches have ended; what that costs belongs to neither.
	if err := pause(ctx, w.options.settle/5); err != nil {
		return err
	}
	s.reopening, err = spent(w.server, func() error { return w.watches.open(ctx) })
	return err
}

// look measures one stage.
func (w *watched) look(ctx context.Context, s *stage) error {
	if err := pause(ctx, w.options.settle); err != nil {
		return err
	}
	var err error
	if s.held, err = w.collect(ctx); err != nil {
		return err
	}
	beaten, received, minutes := w.lab.beats.Load(), w.watches.events.Load(), w.options.rest.Minutes()
	used, err := spent(w.server, func() error { return pause(ctx, w.options.rest) })
	if err != nil {
		return err
	}
	s.cpu = time.Duration(float64(used) / minutes)
	s.beats = float64(w.lab.beats.Load()-beaten) / (minutes * 60)
	s.received = int64(float64(w.watches.events.Load()-received) / minutes)
	if s.memory, err = w.server.Memory(); err != nil {
		return err
	}
	from := time.Now()
	if used, err = spent(w.server, func() error { return w.changePolicy(ctx) }); err != nil {
		return err
	}
	quiet := time.Duration(float64(s.cpu) * time.Since(from).Minutes())
	s.change = max(0, used-quiet) / time.Duration(max(1, w.options.changes))
	return nil
}

// changePolicy changes the policy's spec again and again.
func (w *watched) changePolicy(ctx context.Context) error {
	policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName}}
	for i := range w.options.changes {
		patch := fmt.Appendf(nil, `{"spec":{"priority":%d}}`, i)
		if err := w.lab.client.Patch(ctx, policy, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("changing policy %s: %w", policyName, err)
		}
	}
	return nil
}

// inUse are the numbers of runtime.MemStats at the end of a heap profile of net/http/pprof with debug=1: bytes of heap and of
// stacks in use.
var inUse = regexp.MustCompile(`(?m)^# (?:HeapAlloc = |Stack = )(\d+)`)

// collect has the API server collect its garbage, and reports what it holds after that.
func (w *watched) collect(ctx context.Context) (held int64, err error) {
	server := w.lab.cluster.Client().Discovery().RESTClient()
	profile, err := server.Get().AbsPath("/debug/pprof/heap").Param("gc", "1").Param("debug", "1").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("asking the API server for its heap: %w", err)
	}
	found := inUse.FindAllSubmatch(profile, -1)
	if len(found) != 2 {
		return 0, errors.New("asking the API server for its heap: the profile does not contain what is in use")
	}
	for _, number := range found {
		bytes, err := strconv.ParseInt(string(number[1]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading a heap profile: %w", err)
		}
		held += bytes
	}
	return held, nil
}
