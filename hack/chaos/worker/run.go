package worker

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

const (
	// look is how often what is waited for is looked at.
	look = 20 * time.Millisecond
	// stall is how long nothing goes on before the next fault strikes all the same.
	stall = 700 * time.Millisecond
)

// Outcome is what became of a schedule.
type Outcome struct {
	// Schedule is what was run.
	Schedule schedule.Schedule
	// Struck counts faults by kind; those of requests by request.
	Struck map[schedule.Kind]int
	// Reboots and Grants count what the operator did.
	Reboots, Grants int
	// Converged is how long after the last fault all was done.
	Converged time.Duration
	// Ticks is how often time was put on for that.
	Ticks int
	// Revisions is how much the witness saw.
	Revisions int
	// Violations are what may never happen.
	Violations []judge.Violation
}

// run is one schedule that is being run.
type run struct {
	worker   *Worker
	schedule schedule.Schedule
	dir      string
	ctx      context.Context //nolint:containedctx // the life of the schedule, which its machines share
	cancel   context.CancelFunc
	machines []*machine
	agents   sync.WaitGroup
	back     atomic.Int64
	clocks   *clocks
	admin    *admin
	pods     *workload
	injector *injector // nil until the machines have been made

	mu     sync.Mutex
	events []judge.Change
	err    error
}

// Run runs a schedule. An error means that it could not be run, or that nobody knows what happened.
func (l *Worker) Run(ctx context.Context, s schedule.Schedule) (Outcome, error) {
	dir, err := os.MkdirTemp(l.cluster.Dir, "machines-")
	if err != nil {
		return Outcome{}, fmt.Errorf("making the folder of the machines: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left goes with the worker
	r := newRun(ctx, l, s, dir)
	defer r.end()
	o := Outcome{Schedule: s}
	if err := r.do(&o); err != nil {
		return o, err
	}
	r.judge(&o)
	r.end()
	return o, r.wipe(ctx)
}

func newRun(ctx context.Context, l *Worker, s schedule.Schedule, dir string) *run {
	name := fmt.Sprintf("s%d", s.Seed)
	r := &run{
		worker: l, schedule: s, dir: dir, clocks: &clocks{replicas: l.replicas},
		admin: &admin{api: l.api, objects: l.objects, policies: []string{name}, window: s.Window},
	}
	if s.Sharing {
		r.admin.policies = append(r.admin.policies, name+"-second")
	}
	if !s.Begins.IsZero() {
		r.clocks.offset.Store(int64(time.Until(s.Begins)))
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.pods = &workload{ctx: r.ctx, api: l.api, world: l.world, name: name, group: &r.agents, fail: r.fail, removed: map[string]bool{}}
	return r
}

// end ends the agents and all that is played.
func (r *run) end() {
	r.cancel()
	for _, m := range r.machines {
		m.kill()
	}
	if r.injector != nil {
		r.injector.faults.Wait()
	}
	r.agents.Wait()
}

func (r *run) do(o *Outcome) error {
	r.worker.wire.Seed(r.schedule.Seed)
	r.worker.world.begin(r.pods.see)
	if err := r.populate(); err != nil {
		return err
	}
	r.injector = newInjector(r)
	for _, n := range r.schedule.Needs {
		r.machines[n].need()
	}
	for _, step := range r.schedule.Steps {
		if err := r.await(step); err != nil {
			return err
		}
		r.injector.strike(step)
	}
	r.injector.faults.Wait()
	return r.heal(o)
}

// await waits until it is a step's turn, or until nothing goes on.
func (r *run) await(step schedule.Step) error {
	progress, since := r.progress(), time.Now()
	for progress < step.After && time.Since(since) < stall && len(r.unfinished()) > 0 {
		if err := r.check(); err != nil {
			return err
		}
		pause(r.ctx, look)
		if now := r.progress(); now != progress {
			progress, since = now, time.Now()
		}
	}
	pause(r.ctx, step.Delay)
	return r.check()
}

// progress counts drains that have begun and reboots that are over.
func (r *run) progress() int {
	begun := 0
	r.worker.world.read(func(w *world) { begun = w.begun })
	return begun + int(r.back.Load())
}

// check is why the schedule cannot go on.
func (r *run) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case r.err != nil:
		return r.err
	}
	return r.worker.Err()
}

func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// note keeps what a machine did, in which boot, and after which revision at least.
func (r *run) note(machine int, event judge.MachineEvent, boot string, revision int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, judge.Change{
		At: time.Now(), Revision: max(revision, lastOf(r.events)), Name: fmt.Sprintf("machine %d", machine), Host: event, Boot: boot,
	})
}

// present is the revision of the store by now.
func (r *run) present() (revision int64) {
	insist(r.ctx, func() error {
		list, err := r.worker.api.CoreV1().Nodes().List(r.ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			_, err = fmt.Sscan(list.ResourceVersion, &revision)
		}
		return err
	})
	return revision
}

// judge lets the witness come to the present, and looks at all it has seen.
func (r *run) judge(o *Outcome) {
	present := r.present()
	for h := r.history(o, present); r.check() == nil; h = r.history(o, present) {
		j := judge.New(judge.Options{Semaphore: true})
		for _, record := range h {
			j.Take(record)
		}
		// What is done may be undone for a moment, by a manager whose cache is behind. It has as long as everything else.
		if h != nil && (len(j.LeftBehind(time.Now())) == 0 || o.Converged > patience) {
			j.End(time.Now())
			o.Violations = append(o.Violations, j.Violations()...)
			break
		}
		pause(r.ctx, look)
		o.Converged += look
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, event := range r.events {
		if event.Host == judge.Rebooted {
			o.Reboots++
		}
	}
	o.Struck = r.worker.wire.Struck()
	for kind, n := range r.injector.struck {
		o.Struck[kind] += n
	}
}

// history is what was seen up to a revision and what has come after it, and what the machines did in between. Nil: the witness,
// which is behind them, is not there yet.
func (r *run) history(o *Outcome, present int64) []judge.Change {
	var h []judge.Change
	r.worker.world.read(func(w *world) {
		if w.revision >= lastOf(w.revisions) && (w.revision >= present || present == 0) || lastOf(w.revisions) >= present {
			h, o.Grants, o.Revisions = slices.Clone(w.revisions), len(w.grants), len(w.revisions)
		}
	})
	if h == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range h {
		h[i].By = r.writer(&h[i])
	}
	h = append(h, r.events...)
	slices.SortStableFunc(h, func(a, b judge.Change) int { return cmp.Compare(a.Revision, b.Revision) })
	return h
}

// writer is who wrote a revision, where it was an administrator or the end of a machine.
func (r *run) writer(record *judge.Change) string {
	switch {
	case record.Pod != nil && r.pods.gone(record.Pod):
		return judge.Machine
	case r.admin.wrote(record):
		return judge.Admin
	}
	return ""
}

func lastOf(revisions []judge.Change) int64 {
	if len(revisions) == 0 {
		return 0
	}
	return revisions[len(revisions)-1].Revision
}
