package worker

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

const (
	// look is the polling interval.
	look = 20 * time.Millisecond
	// stall is the time without progress after which the next fault strikes anyway.
	stall = 700 * time.Millisecond
)

// Outcome is the outcome of one schedule.
type Outcome struct {
	// Schedule is the schedule that ran.
	Schedule schedule.Schedule
	// Struck counts faults by kind. Faults of requests count once per request.
	Struck map[schedule.Kind]int
	// Reboots and Grants count the reboots and grants.
	Reboots, Grants int
	// Converged is the time from the last fault until everything was done.
	Converged time.Duration
	// Ticks counts how often the clocks were moved forward in that time.
	Ticks int
	// Revisions counts the revisions that the witness saw.
	Revisions int
	// Violations lists the broken rules.
	Violations []judge.Violation
}

// run is one schedule while it runs.
type run struct {
	worker   *Worker
	schedule schedule.Schedule
	dir      string
	// ctx ends with the schedule, or with the error that invalidates its outcome.
	ctx    context.Context //nolint:containedctx // the life of the schedule, which its machines share
	cancel context.CancelCauseFunc
	hosts  []*host
	agents sync.WaitGroup
	faults sync.WaitGroup
	back   atomic.Int64
	// wrong is the offset of all clocks from real time in nanoseconds, except for clocks that have
	// jumped.
	wrong atomic.Int64
	admin *admin
	pods  *workload
	// plays runs the faults that go on until the operator has coped with them.
	plays sync.WaitGroup

	mu sync.Mutex
	// guarded holds the workloads of the plays, and played counts the plays that go on.
	guarded []*workload
	played  map[schedule.Kind]int
	events  []judge.Change
	begun   map[string]bool // drains, by node and sequence number
}

// Run runs a schedule. An error means that the run failed or that its history is incomplete.
func (w *Worker) Run(s schedule.Schedule) (Outcome, error) {
	dir, err := os.MkdirTemp(w.cluster.Dir, "machines-")
	if err != nil {
		return Outcome{}, fmt.Errorf("making the folder of the machines: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // whatever is left is removed with the worker's folder
	r := newRun(w, s, dir)
	defer r.end()
	o := Outcome{Schedule: s}
	if err := r.do(&o); err != nil {
		return o, err
	}
	if err := r.judge(&o); err != nil {
		return o, err
	}
	r.end()
	return o, r.wipe(w.life)
}

func newRun(l *Worker, s schedule.Schedule, dir string) *run {
	name := fmt.Sprintf("s%d", s.Seed)
	r := &run{
		worker: l, schedule: s, dir: dir, begun: map[string]bool{}, played: map[schedule.Kind]int{},
		admin: &admin{objects: l.objects, policies: []string{name}, windows: s.Windows, cordoned: map[string]bool{}, cordons: map[string]bool{}},
	}
	if s.Sharing {
		r.admin.policies = append(r.admin.policies, name+"-second")
	}
	if !s.Begins.IsZero() {
		r.wrong.Store(int64(time.Until(s.Begins)))
	}
	r.ctx, r.cancel = context.WithCancelCause(l.life)
	r.pods = r.newWorkload(name)
	return r
}

func (r *run) newWorkload(name string) *workload {
	l := r.worker
	return &workload{ctx: r.ctx, objects: l.objects, witness: l.witness, name: name, group: &r.agents, fail: r.fail, removed: map[string]bool{}}
}

// end stops the agents and everything that is played.
func (r *run) end() {
	r.cancel(nil)
	for _, h := range r.hosts {
		h.kill()
	}
	r.faults.Wait()
	r.plays.Wait()
	r.agents.Wait()
}

// offset returns the offset of all clocks from real time.
func (r *run) offset() time.Duration { return time.Duration(r.wrong.Load()) }

// setClocks sets all clocks to the common offset and ends all jumps.
func (r *run) setClocks() error {
	for _, replica := range r.worker.replicas {
		if err := replica.clock.write(r.offset()); err != nil {
			return err
		}
	}
	for _, h := range r.hosts {
		h.Clock.Set(r.offset())
		h.wake()
	}
	return nil
}

// see passes pods on to the workload, and counts the drains that begin.
func (r *run) see(c judge.Change) {
	if c.Pod != nil {
		for _, w := range r.workloads() {
			w.see(c.Pod, c.Gone)
		}
	}
	if c.Node == nil || c.Gone {
		return
	}
	if progress, err := protocol.ParseProgress(c.Node.Annotations); err == nil && progress != nil && progress.Phase == protocol.PhaseDraining {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.begun[fmt.Sprintf("%s/%d", c.Name, progress.Seq)] = true
	}
}

// longest is more than a schedule takes on a busy machine, including patience.
const longest = 10 * time.Minute

func (r *run) do(o *Outcome) error {
	defer time.AfterFunc(longest, func() { r.fail(fmt.Errorf("the schedule took more than %s", longest)) }).Stop()
	r.worker.faults.Seed(r.schedule.Seed)
	r.worker.witness.Begin(r.see)
	if err := r.populate(); err != nil {
		return err
	}
	for _, n := range r.schedule.Needs {
		r.hosts[n].Stage()
	}
	for _, step := range r.schedule.Steps {
		if err := r.await(step); err != nil {
			return err
		}
		injector{r}.strike(step)
	}
	r.faults.Wait()
	if err := r.check(); err != nil {
		return err
	}
	return r.heal(o)
}

// await waits until it is the step's turn, or until nothing progresses.
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

// progress counts drains that have begun and reboots that have ended.
func (r *run) progress() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.begun) + int(r.back.Load())
}

// check returns the reason the schedule cannot continue, or nil.
func (r *run) check() error { return context.Cause(r.ctx) }

func (r *run) fail(err error) {
	if err != nil {
		r.cancel(err)
	}
}

// note records an event of a machine: the boot in which it happened, and a revision that precedes
// it.
func (r *run) note(machine int, event judge.MachineEvent, boot string, revision int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.events); n > 0 {
		revision = max(revision, r.events[n-1].Revision)
	}
	r.events = append(r.events, judge.Change{At: time.Now(), Revision: revision, Name: fmt.Sprintf("machine %d", machine), Host: event, Boot: boot})
}

// present returns the current revision of the store.
func (r *run) present() (revision int64) {
	insist(r.ctx, func() error {
		var nodes corev1.NodeList
		err := r.worker.objects.List(r.ctx, &nodes, client.Limit(1))
		if err == nil {
			revision, err = strconv.ParseInt(nodes.ResourceVersion, 10, 64)
		}
		return err
	})
	return revision
}

// judge waits until the witness has caught up, and judges everything it has seen.
func (r *run) judge(o *Outcome) error {
	for present := r.present(); r.check() == nil; {
		history := r.history(present)
		j := judge.New(judge.Options{Semaphore: true})
		for _, record := range history {
			j.Take(record)
		}
		// A manager whose cache is behind may briefly undo what is done. It gets as much time as
		// everything else.
		if history != nil && (len(j.LeftBehind(time.Now())) == 0 || o.Converged > patience) {
			j.End(time.Now())
			o.Violations = append(o.Violations, j.Violations()...)
			o.count(history)
			break
		}
		pause(r.ctx, look)
		o.Converged += look
	}
	o.Struck = r.worker.faults.Struck()
	return r.check()
}

// count counts the reboots, grants and revisions of a history.
func (o *Outcome) count(history []judge.Change) {
	grants := map[int64]bool{}
	for _, record := range history {
		switch {
		case record.Host == judge.Rebooted:
			o.Reboots++
		case record.Policy != nil:
			for _, e := range record.Policy.Status.Grants {
				grants[e.Seq] = true
			}
		}
		if record.Host == "" {
			o.Revisions++
		}
	}
	o.Grants = len(grants)
}

// history returns everything that was seen at least up to a revision, merged with the events of the
// machines. It returns nil if the witness has not reached the revision.
func (r *run) history(present int64) []judge.Change {
	h := r.worker.witness.History(present)
	if h == nil {
		return nil
	}
	workloads := r.workloads()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range h {
		h[i].By = writer(&h[i], workloads, r.admin)
	}
	h = append(h, r.events...)
	slices.SortStableFunc(h, func(a, b judge.Change) int { return cmp.Compare(a.Revision, b.Revision) })
	return h
}

// writer returns who wrote a revision if it was an administrator or the end of a machine, or else
// "".
func writer(record *judge.Change, workloads []*workload, admin *admin) string {
	switch {
	case record.Pod != nil && slices.ContainsFunc(workloads, func(w *workload) bool { return w.gone(record.Pod) }):
		return judge.Machine
	case admin.wrote(record):
		return judge.Admin
	}
	return ""
}
