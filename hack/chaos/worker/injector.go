package worker

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

// injector carries out the faults of a schedule on a control plane, its managers and its machines.
type injector struct{ *run }

// strike starts a fault, which ends by itself, and counts it if it struck.
func (i injector) strike(step schedule.Step) {
	if play := plays[step.Kind]; play != nil {
		i.play(step, play)
		return
	}
	i.faults.Go(func() {
		if i.struck(step) {
			i.worker.faults.Count(step.Kind, 1)
		}
	})
}

// struck carries out a fault and waits for its end. It returns false if it had nothing to
// strike, or if the wire does the counting, as for requests and watches.
func (i injector) struck(step schedule.Step) bool {
	switch step.Kind {
	case schedule.WatchesDropped:
		i.worker.faults.Count(step.Kind, i.worker.wire.Drop(wire.IsWatch, wire.ErrCut))
	case schedule.ManagerKilled, schedule.ManagerStopped, schedule.ManagerCutOff:
		return i.strikeManager(step)
	case schedule.AgentKilled, schedule.AgentStopped:
		return i.strikeAgent(step)
	case schedule.ServerRestarted, schedule.EtcdStopped, schedule.EtcdRestarted:
		return i.strikeServer(step)
	case schedule.ClockJumped, schedule.ClocksChanged:
		i.strikeClock(step)
		return true
	case schedule.AdminCordons:
		return i.admin.cordon(i.ctx, i.busy(step.Target).node())
	case schedule.NodeDeleted, schedule.NodeRegisteredAgain, schedule.NodeRenamed:
		return i.strikeNode(step)
	case schedule.PolicyEdited, schedule.PolicyPaused, schedule.PolicyRecreated, schedule.StatusWiped:
		return i.strikePolicy(step)
	default:
		i.worker.faults.Set(step.Kind, step.Rate)
		pause(i.ctx, step.For)
		i.worker.faults.Set(step.Kind, 0)
	}
	return false
}

func (i injector) strikeManager(step schedule.Step) bool {
	replica := i.worker.replicas[step.Target%len(i.worker.replicas)]
	p := replica.current()
	switch {
	case p == nil:
		return false
	case step.Kind == schedule.ManagerKilled:
		p.Kill()
	case step.Kind == schedule.ManagerCutOff:
		replica.line.Cut()
		pause(i.ctx, step.For)
		replica.line.Restore()
	case p.Signal(syscall.SIGSTOP) != nil:
		return false // the process may have ended in the meantime
	default:
		pause(i.ctx, step.For)
		_ = p.Signal(syscall.SIGCONT)
	}
	return true
}

func (i injector) strikeAgent(step schedule.Step) bool {
	h := i.busy(step.Target)
	h.mu.Lock()
	a := h.agent
	h.mu.Unlock()
	switch {
	case a == nil:
		return false
	case step.Kind == schedule.AgentStopped:
		a.line.Hold()
		pause(i.ctx, step.For)
		a.line.Release()
	default:
		h.kill()
		pause(i.ctx, step.For/4)
		h.start(i.ctx)
	}
	return true
}

func (i injector) strikeServer(step schedule.Step) bool {
	c := i.worker.cluster
	switch step.Kind {
	case schedule.EtcdStopped:
		if c.Signal(embedded.Etcd, syscall.SIGSTOP) != nil {
			return false // another fault has just killed it
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
	return true
}

// strikeClock moves the clock of one manager, one agent or everybody, forward or back.
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
}

// busy chooses a host, preferably one that is being drained or rebooted.
func (i injector) busy(target int) *host {
	var names []string
	for _, change := range i.worker.witness.Present() {
		if change.Node != nil && (attempted(change.Node) || len(judge.Unfinished(change.Node)) > 0) {
			names = append(names, change.Name)
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

func (i injector) strikeNode(step schedule.Step) bool {
	h := i.busy(step.Target)
	name := h.node()
	switch {
	case h.IsScrapped():
		return false
	case step.Kind == schedule.NodeDeleted:
		h.Scrap()
	case step.Kind == schedule.NodeRenamed:
		h.rename(name + "-renamed")
	}
	if step.Kind != schedule.NodeRegisteredAgain {
		h.kill()
	}
	i.admin.deleteNode(i.ctx, name)
	if step.Kind != schedule.NodeRegisteredAgain {
		i.pods.removePods(name)
	}
	pause(i.ctx, step.For/4)
	h.register(i.ctx)
	h.post(i.ctx)
	h.start(i.ctx)
	return true
}

func (i injector) strikePolicy(step schedule.Step) bool {
	name := i.admin.policies[step.Target/4%len(i.admin.policies)]
	switch step.Kind {
	case schedule.PolicyEdited:
		return i.admin.patchPolicy(i.ctx, name, fmt.Sprintf(`{"spec":{"concurrency":{"maxUnavailable":%d}}}`, 1+step.Target%4))
	case schedule.PolicyPaused:
		if !i.admin.patchPolicy(i.ctx, name, `{"spec":{"pause":{"reason":"chaos"}}}`) {
			return false
		}
		pause(i.ctx, step.For)
		i.admin.patchPolicy(i.ctx, name, `{"spec":{"pause":null}}`)
	case schedule.PolicyRecreated:
		insist(i.ctx, func() error { return i.admin.releasePolicy(i.ctx, name) })
		pause(i.ctx, step.For/8)
		i.admin.createPolicy(i.ctx, name, i.schedule.Limit)
	default:
		return i.wipeStatus(name)
	}
	return true
}

// wipeStatus removes everything from the status of a policy except status.seq, which the API server
// keeps.
func (i injector) wipeStatus(name string) (wiped bool) {
	insist(i.ctx, func() error {
		policy := &v1alpha1.RebootPolicy{}
		if err := i.worker.objects.Get(i.ctx, client.ObjectKey{Name: name}, policy); err != nil {
			return client.IgnoreNotFound(err)
		}
		all := policy.DeepCopy()
		all.Status = v1alpha1.RebootPolicyStatus{}
		if err := i.worker.objects.Status().Update(i.ctx, all); err == nil {
			if policy.Status.Seq > 0 {
				i.fail(fmt.Errorf("the API server has let status.seq %d go", policy.Status.Seq))
			}
			wiped = true
			return nil
		}
		policy.Status = v1alpha1.RebootPolicyStatus{Seq: policy.Status.Seq, Limit: policy.Status.Limit}
		err := i.worker.objects.Status().Update(i.ctx, policy)
		wiped = err == nil
		return client.IgnoreNotFound(err)
	})
	return wiped
}
