package simulation

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// injector does to a world what its script specifies: what an administrator or chance would do.
type injector struct{ *World }

// perform does the faults of the script, each at its time.
func (i injector) perform() {
	began := time.Now()
	for _, fault := range i.script.Faults {
		if !process.Wait(i.ctx, time.Until(began.Add(fault.At))) {
			return
		}
		i.do(fault)
	}
	process.Wait(i.ctx, time.Until(began.Add(i.script.Faulty)))
}

// do does a fault, and counts it where it struck: a machine that is down loses no power.
func (i injector) do(d Fault) {
	strike := func() {
		if i.strike(d) {
			i.counts.Add(string(d.What))
		}
	}
	switch d.What {
	case Recordon, DeleteBusy, DeleteBusyPolicy, WipeBusyStatus:
		i.Go(strike) // they wait for what they strike
	default:
		strike()
	}
}

func (i injector) strike(d Fault) bool {
	switch d.What {
	case KillManager:
		return kill(i.replicas[d.Target].now())
	case FreezeManager:
		return i.replicas[d.Target].freeze(d.For)
	case Outage:
		i.outage(d.For)
		return true
	case Compact:
		i.store.Compact()
		return true
	case DeletePolicy, DeleteBusyPolicy, WipeStatus, WipeBusyStatus, SetLimit, PausePolicy, ResumePolicy, EndHalt, DryRun, Enforce:
		return i.strikePolicy(i.script.Policies[d.Target], d)
	default:
		return i.strikeHost(i.hosts[d.Target], d)
	}
}

func (i injector) strikePolicy(as *v1alpha1.RebootPolicy, d Fault) bool {
	switch d.What {
	case DeletePolicy:
		return i.deletePolicy(as, d)
	case DeleteBusyPolicy:
		return i.granted(as.Name) && i.deletePolicy(as, d)
	case WipeStatus:
		return i.admin.wipeStatus(as.Name)
	case WipeBusyStatus:
		return i.granted(as.Name) && process.Wait(i.ctx, d.For) && i.admin.wipeStatus(as.Name)
	default:
		return i.admin.editPolicy(as.Name, d)
	}
}

func (i injector) strikeHost(h *host, d Fault) bool {
	switch d.What {
	case StageUpdate:
		return h.Stage()
	case LosePower:
		return h.goDown(i.ctx, h.BootID(), judge.Lost, d.For)
	case JumpClock:
		h.Clock.Set(d.For)
		return true
	case KillAgent, FreezeAgent:
		return i.strikeAgent(h, d)
	case DeleteNode:
		return i.deleteNode(h, d)
	case DeleteBusy:
		return i.deleteBusy(h, d)
	case Recordon:
		return i.recordon(h.name, d.For)
	default:
		return i.admin.editNode(h.name, d)
	}
}

func (i injector) strikeAgent(h *host, d Fault) bool {
	h.mu.Lock()
	p := h.agent
	h.mu.Unlock()
	if d.What == KillAgent {
		return kill(p)
	}
	if p == nil || !p.Alive() {
		return false
	}
	p.Hold()
	i.Go(func() {
		process.Wait(i.ctx, d.For)
		p.Release()
	})
	return true
}

// kill ends a process. False: there is none.
func kill(p *process.Process) bool {
	if p == nil || !p.Alive() {
		return false
	}
	p.Kill()
	return true
}

// outage lets no request through for a while. A leader that cannot renew its lease ends.
func (i injector) outage(d time.Duration) {
	i.conditions.outages.Add(1)
	for _, r := range i.replicas {
		r.disconnect(d)
	}
	i.Go(func() {
		process.Wait(i.ctx, d)
		i.conditions.outages.Add(-1)
	})
}

// recordonLook is how often an administrator looks for a cordon to take over.
const recordonLook = 2 * time.Minute

// recordon takes over the agent's cordon of a node, as soon as there is one within a day.
func (i injector) recordon(name string, after time.Duration) bool {
	cordoned := i.await(recordonLook, day, func() bool {
		node, there := apiserver.Read[*corev1.Node](i.store, name)
		return there && cordonedBy(node, v1alpha1.FieldOwnerAgent)
	})
	if !cordoned || !i.admin.editNode(name, Fault{What: UncordonNode}) { // the operator may be faster
		return false
	}
	process.Wait(i.ctx, after)
	i.admin.editNode(name, Fault{What: CordonNode})
	return true
}

func cordonedBy(node *corev1.Node, who string) bool {
	return node.Spec.Unschedulable && len(node.ManagedFields) > 0 && node.ManagedFields[0].Manager == who
}

// await looks every now and then whether something is so, and reports whether it was within a time, and before the faults end.
func (i injector) await(every, within time.Duration, so func() bool) bool {
	for range int(within / every) {
		if so() {
			return true
		}
		if !process.Wait(i.ctx, every) || i.conditions.calm.Load() {
			return false
		}
	}
	return false
}
