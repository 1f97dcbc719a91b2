package worker

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/machine"
)

// This file has the plays: faults that go on until the operator has coped with them. If it does not
// cope, the schedule does not converge.

const (
	// rewritten is the time between two writes of a Node by another program, 18 in a second.
	rewritten = time.Second / 18
	// mostAnnotations is the maximum size of all annotations of an object in bytes.
	mostAnnotations = 256 << 10
	// foreign is an annotation of another program.
	foreign = "example.com/foreign"
)

// plays maps kinds to their plays. A play reports whether it came to its end. It does not if another
// fault took the machine away.
var plays = map[schedule.Kind]func(injector, schedule.Step) bool{
	schedule.BudgetOpensLate:  injector.budgetOpensLate,
	schedule.BudgetNeverOpens: injector.budgetNeverOpens,
	schedule.EvictionDenied:   injector.evictionDenied,
	schedule.PodsComeBack:     injector.podsComeBack,
	schedule.MachineRestored:  injector.machineRestored,
	schedule.BootIDStays:      injector.bootIDStays,
	schedule.NeedReturns:      injector.needReturns,
	schedule.NodesRewritten:   injector.nodesRewritten,
	schedule.AnnotationsFull:  injector.annotationsFull,
	schedule.WriteStripped:    injector.writeStripped,
}

// play runs a play until it comes to its end, with one machine after the other if necessary.
func (i injector) play(step schedule.Step, play func(injector, schedule.Step) bool) {
	note := func(by int) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.played[step.Kind] += by
	}
	note(1)
	i.plays.Go(func() {
		for i.ctx.Err() == nil && !play(i, step) {
			pause(i.ctx, look)
		}
		if i.ctx.Err() == nil {
			i.worker.faults.Count(step.Kind, 1)
		}
		note(-1)
	})
}

// stillPlayed returns the kinds whose plays have not come to their ends.
func (r *run) stillPlayed() (kinds []schedule.Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind, n := range r.played {
		if n > 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func (r *run) workloads() []*workload {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*workload{r.pods}, r.guarded...)
}

// stage is the machine of a play, and its Node at the beginning.
type stage struct {
	injector

	host *host
	name string
	uid  types.UID
}

// idle waits for a machine that needs nothing and whose Node is not in an attempt, and reserves it.
// Call leave after the play.
func (i injector) idle(target int) (s stage, ok bool) {
	for i.ctx.Err() == nil {
		for n := range i.hosts {
			h := i.hosts[(target+n)%len(i.hosts)]
			node := i.nodeOf(h.node())
			if node == nil || !h.IsUp() || h.Unfinished() != "" || attempted(node) || len(judge.Unsettled(node)) > 0 || node.Spec.Unschedulable {
				continue
			}
			if h.played.CompareAndSwap(false, true) {
				return stage{injector: i, host: h, name: node.Name, uid: node.UID}, true
			}
		}
		pause(i.ctx, look)
	}
	return stage{}, false
}

func (s stage) leave() { s.host.played.Store(false) }

// nodeOf returns the last revision of a Node, or nil if there is no such Node.
func (r *run) nodeOf(name string) *corev1.Node {
	for _, change := range r.worker.witness.Present() {
		if change.Node != nil && change.Name == name {
			return change.Node
		}
	}
	return nil
}

// await waits until so returns true for the Node. It returns false if another fault took the Node
// away.
func (s stage) await(so func(*corev1.Node) bool) bool {
	for s.ctx.Err() == nil {
		switch node := s.nodeOf(s.name); {
		case node == nil || node.UID != s.uid || s.host.node() != s.name:
			return false
		case so(node):
			return true
		}
		pause(s.ctx, look)
	}
	return false
}

// patch changes the Node as another program, and retries until it succeeds.
func (s stage) patch(text string) {
	insist(s.ctx, func() error {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
		return client.IgnoreNotFound(s.worker.objects.Patch(s.ctx, node, client.RawPatch(types.MergePatchType, []byte(text))))
	})
}

func progressOf(node *corev1.Node) protocol.Progress {
	progress, err := protocol.ParseProgress(node.Annotations)
	if err != nil || progress == nil {
		return protocol.Progress{}
	}
	return *progress
}

func isDraining(node *corev1.Node) bool {
	return node.Spec.Unschedulable && progressOf(node).Phase == protocol.PhaseDraining
}

// machineRestored starts a machine from a snapshot of the boot before its last reboot, so that the
// progress on its Node names the boot ID of the machine again.
func (i injector) machineRestored(step schedule.Step) bool {
	for n := range i.hosts {
		h := i.hosts[(step.Target+n)%len(i.hosts)]
		node := i.nodeOf(h.node())
		if node == nil || !h.IsUp() || h.IsLeaving() || attempted(node) || len(judge.Unfinished(node)) > 0 {
			continue
		}
		if !h.played.CompareAndSwap(false, true) {
			continue
		}
		id, err := h.Restore(node)
		i.fail(err)
		if id != "" {
			h.post(i.ctx)
			h.start(i.ctx)
		}
		h.played.Store(false)
		if id != "" {
			return true
		}
	}
	return false
}

// bootIDStays makes a machine keep its boot ID over its next reboot.
func (i injector) bootIDStays(step schedule.Step) bool {
	s, ok := i.idle(step.Target)
	if !ok {
		return false
	}
	defer s.leave()
	s.fail(s.host.SetUptime(machine.LongUp))
	s.host.KeepBootID(true)
	boots := s.host.Boots()
	s.host.Stage()
	return s.await(func(node *corev1.Node) bool { return s.host.Boots() > boots && !attempted(node) })
}

// needReturns makes the need of a machine come back after each boot, until the operator stops
// rebooting it for that.
func (i injector) needReturns(step schedule.Step) bool {
	s, ok := i.idle(step.Target)
	if !ok {
		return false
	}
	defer s.leave()
	s.fail(s.host.SetUptime(machine.LongUp))
	s.host.LetNeedReturn()
	defer s.host.Repair()
	s.host.Stage()
	return s.await(func(node *corev1.Node) bool {
		return v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootPermitted).Reason == string(v1alpha1.ReasonUpdateNotApplied)
	})
}

// nodesRewritten plays another program that writes each Node that is not done, until the schedule is
// over.
func (i injector) nodesRewritten(schedule.Step) bool {
	i.agents.Go(func() {
		for n := 0; i.ctx.Err() == nil; n++ {
			for _, change := range i.worker.witness.Present() {
				if change.Node != nil && (attempted(change.Node) || len(judge.Unsettled(change.Node)) > 0) {
					patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, foreign, n))
					_ = i.worker.objects.Patch(i.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: change.Name}}, patch) // it does not insist
				}
			}
			pause(i.ctx, rewritten)
		}
	})
	return true
}

// annotationsFull fills the annotations of a Node until the Node shows that its machine needs a
// reboot.
func (i injector) annotationsFull(step schedule.Step) bool {
	s, ok := i.idle(step.Target)
	if !ok {
		return false
	}
	defer s.leave()
	node := s.nodeOf(s.name)
	room := mostAnnotations - len(foreign)
	for key, value := range node.Annotations {
		room -= len(key) + len(value)
	}
	s.patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, foreign, strings.Repeat("x", room)))
	defer s.patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, foreign))
	s.host.Stage()
	return s.await(func(node *corev1.Node) bool {
		return v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootRequired).Status == corev1.ConditionTrue
	})
}

// writeStripped drops every active grant from writes of Nodes until a ledger has withdrawn one. It
// moves the clocks forward while a ledger entry waits.
func (i injector) writeStripped(schedule.Step) bool {
	i.worker.faults.Strip(true)
	defer i.worker.faults.Strip(false)
	for i.ctx.Err() == nil {
		granted := false
		for _, change := range i.worker.witness.Present() {
			if change.Policy == nil {
				continue
			}
			for _, e := range change.Policy.Status.Grants {
				if e.WithdrawnAt != nil {
					return true
				}
				node := i.nodeOf(e.Node)
				granted = granted || node != nil && !attempted(node)
			}
		}
		if granted {
			i.wrong.Add(int64(time.Minute))
			i.fail(i.setClocks())
		}
		pause(i.ctx, stall)
	}
	return false
}
