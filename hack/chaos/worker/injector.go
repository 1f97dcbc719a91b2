package worker

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
)

var errNowhere = errors.New("no node takes pods")

// injector does to a run what its schedule specifies.
type injector struct{ *run }

// strike begins a fault; what lasts ends by itself in the background.
func (r injector) strike(step schedule.Step) {
	switch step.Kind {
	case schedule.Conflict, schedule.TooMany, schedule.ServerError, schedule.AnswerLost:
		r.worker.wire.Set(step.Kind, step.Rate)
		r.after(step, func() { r.worker.wire.Set(step.Kind, 0) })
	case schedule.WatchesDropped:
		r.count(step.Kind, r.worker.wire.DropWatches())
	case schedule.ManagerKilled, schedule.ManagerStopped, schedule.ManagerCutOff:
		r.strikeManager(step)
	case schedule.AgentKilled, schedule.AgentStopped:
		r.strikeAgent(step)
	case schedule.ServerRestarted, schedule.EtcdStopped, schedule.EtcdRestarted:
		r.strikeServer(step)
	case schedule.ClockJumped, schedule.ClocksChanged:
		r.strikeClock(step)
	case schedule.NodeDeleted, schedule.NodeRegisteredAnew, schedule.NodeRenamed, schedule.AdminCordons:
		r.faults.Go(func() { r.strikeNode(step) })
	case schedule.PolicyEdited, schedule.PolicyPaused, schedule.PolicyRecreated, schedule.StatusWiped:
		r.faults.Go(func() { r.strikePolicy(step) })
	}
}

// after ends a fault when its time is over.
func (r injector) after(step schedule.Step, end func()) {
	r.faults.Go(func() {
		pause(r.ctx, step.For)
		end()
	})
}

func (r injector) strikeManager(step schedule.Step) {
	replica := r.worker.replicas[step.Target%len(r.worker.replicas)]
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
		r.after(step, func() { _ = p.Signal(syscall.SIGCONT) })
	default:
		replica.line.Cut()
		r.after(step, func() { replica.line.Restore(r.worker.life) })
	}
	r.count(step.Kind, 1)
}

func (r injector) strikeAgent(step schedule.Step) {
	m := r.busy(step.Target)
	m.mu.Lock()
	a := m.agent
	m.mu.Unlock()
	if a == nil {
		return
	}
	r.count(step.Kind, 1)
	if step.Kind == schedule.AgentStopped {
		a.line.Hold()
		r.after(step, a.line.Release)
		return
	}
	m.kill()
	r.faults.Go(func() {
		pause(r.ctx, step.For/4)
		m.mu.Lock()
		up := !m.down && m.agent == nil
		m.mu.Unlock()
		if up {
			m.start(r.ctx)
		}
	})
}

func (r injector) strikeServer(step schedule.Step) {
	c := r.worker.cluster
	r.faults.Go(func() {
		switch step.Kind {
		case schedule.EtcdStopped:
			if c.Signal(embedded.Etcd, syscall.SIGSTOP) != nil {
				return // another fault has just killed it
			}
			pause(r.ctx, 2*step.For)
			r.worker.fail(c.Signal(embedded.Etcd, syscall.SIGCONT))
		case schedule.EtcdRestarted:
			c.Kill(embedded.Etcd)
			pause(r.ctx, step.For/2)
			r.worker.fail(c.Revive(r.ctx, embedded.Etcd))
		default:
			c.Kill(embedded.KubeAPIServer)
			r.worker.fail(c.Revive(r.ctx, embedded.KubeAPIServer))
		}
		r.count(step.Kind, 1)
	})
}

// strikeClock puts on or back the clock of one manager, of one agent, or of everybody.
func (r injector) strikeClock(step schedule.Step) {
	by := time.Hour
	if step.Target%3 == 0 {
		by = -time.Hour
	}
	switch {
	case step.Kind == schedule.ClocksChanged:
		r.offset.Add(int64(time.Hour))
		r.failIf(r.setClocks())
	case step.Target%2 == 0:
		replica := r.worker.replicas[step.Target/2%len(r.worker.replicas)]
		r.failIf(replica.clock.write(time.Duration(r.offset.Load()) + by))
	default:
		m := r.busy(step.Target)
		m.clock.offset.Add(int64(by))
		m.wake()
	}
	r.count(step.Kind, 1)
}

func (r injector) failIf(err error) {
	if err != nil {
		r.fail(err)
	}
}

func (r injector) strikePolicy(step schedule.Step) {
	switch step.Kind {
	case schedule.PolicyEdited:
		if r.patchPolicy(fmt.Sprintf(`{"spec":{"concurrency":{"maxUnavailable":%d}}}`, 1+step.Target%4)) {
			r.count(step.Kind, 1)
		}
	case schedule.PolicyPaused:
		if r.patchPolicy(`{"spec":{"pause":{"reason":"chaos"}}}`) {
			r.count(step.Kind, 1)
			r.after(step, func() { r.patchPolicy(`{"spec":{"pause":null}}`) })
		}
	case schedule.PolicyRecreated:
		r.insist(r.ctx, func() error { return r.releasePolicy(r.ctx) })
		pause(r.ctx, step.For/8)
		r.createPolicy(r.schedule.Limit)
		r.count(step.Kind, 1)
	default:
		r.wipeStatus(step)
	}
}

// wipeStatus removes the status. The API server refuses to let status.seq go, so what goes is everything else.
func (r injector) wipeStatus(step schedule.Step) {
	r.insist(r.ctx, func() error {
		policy := &v1alpha1.RebootPolicy{}
		if err := r.worker.objects.Get(r.ctx, client.ObjectKey{Name: r.policy}, policy); err != nil {
			return client.IgnoreNotFound(err)
		}
		all := policy.DeepCopy()
		all.Status = v1alpha1.RebootPolicyStatus{}
		if err := r.worker.objects.Status().Update(r.ctx, all); err == nil && policy.Status.Seq > 0 {
			r.fail(fmt.Errorf("the API server has let status.seq %d go", policy.Status.Seq))
		}
		policy.Status = v1alpha1.RebootPolicyStatus{Seq: policy.Status.Seq, Limit: policy.Status.Limit}
		err := r.worker.objects.Status().Update(r.ctx, policy)
		if apierrors.IsConflict(err) {
			return err
		}
		if err == nil {
			r.count(step.Kind, 1)
		}
		return client.IgnoreNotFound(err)
	})
}

func (m *machine) wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.agent != nil {
		m.agent.wake.Trigger()
	}
}
