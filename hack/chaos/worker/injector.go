package worker

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
)

// injector does to a control plane, its managers and machines what a schedule specifies.
type injector struct{ *run }

// strike begins a fault; what lasts ends by itself in the background.
func (i injector) strike(step schedule.Step) {
	switch step.Kind {
	case schedule.Conflict, schedule.TooMany, schedule.ServerError, schedule.AnswerLost:
		i.worker.wire.Set(step.Kind, step.Rate)
		i.after(step, func() { i.worker.wire.Set(step.Kind, 0) })
	case schedule.WatchesDropped:
		i.worker.wire.Count(step.Kind, i.worker.wire.DropWatches())
	case schedule.ManagerKilled, schedule.ManagerStopped, schedule.ManagerCutOff:
		i.strikeManager(step)
	case schedule.AgentKilled, schedule.AgentStopped:
		i.strikeAgent(step)
	case schedule.ServerRestarted, schedule.EtcdStopped, schedule.EtcdRestarted:
		i.strikeServer(step)
	case schedule.ClockJumped, schedule.ClocksChanged:
		i.strikeClock(step)
	case schedule.NodeDeleted, schedule.NodeRegisteredAnew, schedule.NodeRenamed, schedule.AdminCordons:
		i.faults.Go(func() { i.strikeNode(step) })
	case schedule.PolicyEdited, schedule.PolicyPaused, schedule.PolicyRecreated, schedule.StatusWiped:
		i.faults.Go(func() { i.strikePolicy(step) })
	}
}

// after ends a fault when its time is over.
func (i injector) after(step schedule.Step, end func()) {
	i.faults.Go(func() {
		pause(i.ctx, step.For)
		end()
	})
}

func (i injector) strikeManager(step schedule.Step) {
	replica := i.worker.replicas[step.Target%len(i.worker.replicas)]
	p := replica.current()
	if p == nil {
		return
	}
	switch step.Kind {
	case schedule.ManagerKilled:
		p.Kill()
	case schedule.ManagerStopped:
		if p.Signal(syscall.SIGSTOP) != nil {
			return // it has ended meanwhile, and so it may before it goes on
		}
		i.after(step, func() { _ = p.Signal(syscall.SIGCONT) })
	default:
		replica.line.Cut()
		i.after(step, func() { replica.line.Restore(i.worker.life) })
	}
	i.worker.wire.Count(step.Kind, 1)
}

func (i injector) strikeAgent(step schedule.Step) {
	h := i.busy(step.Target)
	h.mu.Lock()
	a := h.agent
	h.mu.Unlock()
	if a == nil {
		return
	}
	i.worker.wire.Count(step.Kind, 1)
	if step.Kind == schedule.AgentStopped {
		a.line.Hold()
		i.after(step, a.line.Release)
		return
	}
	h.kill()
	i.faults.Go(func() {
		pause(i.ctx, step.For/4)
		h.start(i.ctx)
	})
}

func (i injector) strikeServer(step schedule.Step) {
	c := i.worker.cluster
	i.faults.Go(func() {
		switch step.Kind {
		case schedule.EtcdStopped:
			if c.Signal(embedded.Etcd, syscall.SIGSTOP) != nil {
				return // another fault has just killed it
			}
			pause(i.ctx, 2*step.For)
			i.worker.fail(c.Signal(embedded.Etcd, syscall.SIGCONT))
		case schedule.EtcdRestarted:
			c.Kill(embedded.Etcd)
			pause(i.ctx, step.For/2)
			i.worker.fail(c.Revive(i.ctx, embedded.Etcd))
		default:
			c.Kill(embedded.KubeAPIServer)
			i.worker.fail(c.Revive(i.ctx, embedded.KubeAPIServer))
		}
		i.worker.wire.Count(step.Kind, 1)
	})
}

// strikeClock puts on or back the clock of one manager, of one agent, or of everybody.
func (i injector) strikeClock(step schedule.Step) {
	by := time.Hour
	if step.Target%3 == 0 {
		by = -time.Hour
	}
	switch {
	case step.Kind == schedule.ClocksChanged:
		i.wrong.Add(int64(time.Hour))
		i.fail(i.setClocks())
	case step.Target%2 == 0:
		replica := i.worker.replicas[step.Target/2%len(i.worker.replicas)]
		i.fail(replica.clock.write(i.offset() + by))
	default:
		h := i.busy(step.Target)
		h.Clock.Jump(by)
		h.wake()
	}
	i.worker.wire.Count(step.Kind, 1)
}

// busy chooses a host: rather one that is being drained or rebooted.
func (i injector) busy(target int) *host {
	var names []string
	for _, there := range i.worker.witness.Present() {
		if there.Node != nil && !settled(there.Node) {
			names = append(names, there.Name)
		}
	}
	slices.Sort(names)
	name := ""
	if len(names) > 0 && target%4 > 0 {
		name = names[target%len(names)]
	}
	start := target % len(i.hosts)
	for n := range i.hosts {
		h := i.hosts[(start+n)%len(i.hosts)]
		if !h.IsScrapped() && (name == "" || h.node() == name) {
			return h
		}
	}
	return i.hosts[start]
}

func (i injector) strikeNode(step schedule.Step) {
	h := i.busy(step.Target)
	name := h.node()
	switch step.Kind {
	case schedule.AdminCordons:
		done, err := i.admin.cordon(i.ctx, name)
		if done {
			i.worker.wire.Count(step.Kind, 1)
		}
		i.fail(err)
		return
	case schedule.NodeRegisteredAnew:
		if h.IsScrapped() {
			return
		}
	case schedule.NodeDeleted:
		if !h.Scrap() {
			return
		}
		h.kill()
	default:
		if h.IsScrapped() {
			return
		}
		h.rename(name + "-renamed")
		h.kill()
	}
	i.worker.wire.Count(step.Kind, 1)
	i.admin.deleteNode(i.ctx, name)
	if step.Kind != schedule.NodeRegisteredAnew {
		i.pods.removePods(name)
	}
	pause(i.ctx, step.For/4)
	h.register(i.ctx)
	h.post(i.ctx)
	h.start(i.ctx)
}

func (i injector) strikePolicy(step schedule.Step) {
	name := i.admin.policies[step.Target/4%len(i.admin.policies)]
	switch step.Kind {
	case schedule.PolicyEdited:
		if i.admin.patchPolicy(i.ctx, name, fmt.Sprintf(`{"spec":{"concurrency":{"maxUnavailable":%d}}}`, 1+step.Target%4)) {
			i.worker.wire.Count(step.Kind, 1)
		}
	case schedule.PolicyPaused:
		if i.admin.patchPolicy(i.ctx, name, `{"spec":{"pause":{"reason":"chaos"}}}`) {
			i.worker.wire.Count(step.Kind, 1)
			i.after(step, func() { i.admin.patchPolicy(i.ctx, name, `{"spec":{"pause":null}}`) })
		}
	case schedule.PolicyRecreated:
		insist(i.ctx, func() error { return i.admin.releasePolicy(i.ctx, name) })
		pause(i.ctx, step.For/8)
		i.admin.createPolicy(i.ctx, name, i.schedule.Limit)
		i.worker.wire.Count(step.Kind, 1)
	default:
		i.wipeStatus(step.Kind, name)
	}
}

// wipeStatus removes the status of a policy. The API server refuses to let status.seq go, so what goes is everything else.
func (i injector) wipeStatus(kind schedule.Kind, name string) {
	insist(i.ctx, func() error {
		policy := &v1alpha1.RebootPolicy{}
		if err := i.worker.objects.Get(i.ctx, client.ObjectKey{Name: name}, policy); err != nil {
			return client.IgnoreNotFound(err)
		}
		all := policy.DeepCopy()
		all.Status = v1alpha1.RebootPolicyStatus{}
		if err := i.worker.objects.Status().Update(i.ctx, all); err == nil && policy.Status.Seq > 0 {
			i.fail(fmt.Errorf("the API server has let status.seq %d go", policy.Status.Seq))
		}
		policy.Status = v1alpha1.RebootPolicyStatus{Seq: policy.Status.Seq, Limit: policy.Status.Limit}
		err := i.worker.objects.Status().Update(i.ctx, policy)
		if apierrors.IsConflict(err) {
			return err
		}
		if err == nil {
			i.worker.wire.Count(kind, 1)
		}
		return client.IgnoreNotFound(err)
	})
}
