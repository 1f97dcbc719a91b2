package worker

import (
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
	// Reboots and Grants count what the operator did, Aborted drains that it gave up.
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
	policy   string
	ctx      context.Context //nolint:containedctx // the life of the schedule, which its machines share
	cancel   context.CancelFunc
	machines []*machine
	agents   sync.WaitGroup
	faults   sync.WaitGroup
	back     atomic.Int64
	// offset is how far all clocks are from the real one, but for those that have jumped; nanoseconds.
	offset atomic.Int64

	mu      sync.Mutex
	events  []judge.Record
	cordons []cordon
	removed map[string]bool
	struck  map[schedule.Kind]int
	created int
	err     error
}

// Run runs a schedule. An error means that it could not be run, or that nobody knows what happened.
func (l *Worker) Run(ctx context.Context, s schedule.Schedule) (Outcome, error) {
	dir, err := os.MkdirTemp(l.cluster.Dir, "machines-")
	if err != nil {
		return Outcome{}, fmt.Errorf("making the folder of the machines: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left goes with the worker
	r := &run{
		worker: l, schedule: s, dir: dir, policy: fmt.Sprintf("s%d", s.Seed), removed: map[string]bool{}, struck: map[schedule.Kind]int{},
	}
	if !s.Begins.IsZero() {
		r.offset.Store(int64(time.Until(s.Begins)))
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	defer r.end()
	o := Outcome{Schedule: s}
	if err := r.do(&o); err != nil {
		return o, err
	}
	r.judge(&o)
	r.end()
	return o, r.wipe(ctx)
}

// end ends the agents and all that is played.
func (r *run) end() {
	r.cancel()
	for _, m := range r.machines {
		m.kill()
	}
	r.faults.Wait()
	r.agents.Wait()
}

func (r *run) do(o *Outcome) error {
	r.worker.wire.Seed(r.schedule.Seed)
	r.worker.world.begin(r.podSeen)
	if err := r.populate(); err != nil {
		return err
	}
	for _, n := range r.schedule.Needs {
		r.machines[n].need()
	}
	for _, step := range r.schedule.Steps {
		if err := r.await(step); err != nil {
			return err
		}
		injector{r}.strike(step)
	}
	r.faults.Wait()
	return r.heal(o)
}

// await waits until it is a step's turn, or until nothing goes on.
func (r *run) await(step schedule.Step) error {
	progress, since := r.progress(), time.Now()
	for progress < step.After && time.Since(since) < stall && !r.done() {
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

// done reports whether every machine has had its reboot, and every Node is as if nothing had been.
func (r *run) done() bool {
	for _, m := range r.machines {
		m.mu.Lock()
		busy := !m.gone && (m.needed || m.down)
		m.mu.Unlock()
		if busy {
			return false
		}
	}
	admins := r.cordoned()
	done := false
	r.worker.world.read(func(w *world) {
		done = w.policy != nil && w.policy.DeletionTimestamp == nil && len(w.policy.Status.Grants) == 0
		for name, node := range w.nodes {
			done = done && quiet(node, admins[name])
		}
	})
	return done
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

// note keeps what a machine did, in which boot.
func (r *run) note(machine int, event judge.MachineEvent, boot string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, judge.Record{At: time.Now(), Name: fmt.Sprintf("machine %d", machine), Host: event, Boot: boot})
}

func (r *run) count(kind schedule.Kind, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.struck[kind] += n
}

// cordoned are the nodes that an administrator has cordoned and not uncordoned.
func (r *run) cordoned() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	nodes := map[string]bool{}
	for _, c := range r.cordons {
		nodes[c.node] = c.on
	}
	return nodes
}

// admins are the nodes that stay cordoned.
func (r *run) admins() []string {
	var names []string
	for name, on := range r.cordoned() {
		if on {
			names = append(names, name)
		}
	}
	return names
}

// setClocks sets everybody's clock, and ends all jumps.
func (r *run) setClocks() error {
	offset := time.Duration(r.offset.Load())
	for _, replica := range r.worker.replicas {
		if err := replica.clock.write(offset); err != nil {
			return err
		}
	}
	for _, m := range r.machines {
		m.clock.offset.Store(int64(offset))
		m.wake()
	}
	return nil
}

// insist tries a write until it succeeds or the schedule ends: whoever makes it would.
func (r *run) insist(ctx context.Context, write func() error) {
	for ctx.Err() == nil && write() != nil {
		pause(ctx, again)
	}
}

// judge lets the witness come to the present, and looks at all it has seen.
func (r *run) judge(o *Outcome) {
	var present int64
	r.insist(r.ctx, func() error {
		list, err := r.worker.api.CoreV1().Nodes().List(r.ctx, metav1.ListOptions{})
		if err == nil {
			_, err = fmt.Sscan(list.ResourceVersion, &present)
		}
		return err
	})
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
	for kind, n := range r.struck {
		o.Struck[kind] += n
	}
}

// history is what was seen up to a revision and what has come after it, and then what the machines did: the witness is behind
// them. Nil: the witness is not there yet.
func (r *run) history(o *Outcome, present int64) []judge.Record {
	var h []judge.Record
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
	return append(h, r.events...)
}

// writer is who wrote a revision, where it was an administrator or the end of a machine. Every status of the operator has conditions.
func (r *run) writer(record *judge.Record) string {
	switch {
	case record.Policy != nil && (record.Gone || len(record.Policy.Status.Conditions) == 0),
		record.Node != nil && slices.ContainsFunc(r.cordons, func(c cordon) bool { return c.revision == record.Revision && c.node == record.Name }):
		return judge.Admin
	case record.Pod != nil && r.removed[string(record.Pod.UID)]:
		return judge.Machine
	}
	return ""
}

func lastOf(revisions []judge.Record) int64 {
	if len(revisions) == 0 {
		return 0
	}
	return revisions[len(revisions)-1].Revision
}

// cordon is what an administrator did to a node, in which revision: cordoned it, or else deleted it.
type cordon struct {
	revision int64
	node     string
	on       bool
}
