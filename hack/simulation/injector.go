package simulation

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// injector does to a world what its script specifies: what an administrator or chance would do.
type injector struct {
	admin    admin
	ctx      context.Context //nolint:containedctx // it is as long as the world
	script   Script
	store    *apiserver.Store
	machines []*machine
	replicas []*replica
	counts   *process.Counts
	// conditions are those of all requests.
	conditions *conditions
	// background runs what the world waits for in the end, must notes an error that may not happen, and makePolicy creates a
	// policy of the script.
	background func(func())
	must       func(error)
	makePolicy func(*v1alpha1.RebootPolicy)
}

// newInjector is the injector of a world whose machines and managers have been made.
func newInjector(w *World) injector {
	return injector{
		admin: w.admin, ctx: w.ctx, script: w.script, store: w.store, machines: w.machines, replicas: w.replicas, counts: w.counts,
		conditions: w.conditions, background: w.Go, must: w.must, makePolicy: w.makePolicy,
	}
}

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
	switch d.What {
	case Recordon:
		i.background(func() { i.recordon(i.script.Nodes[d.Target].Name, d.For) })
		return
	case DeleteBusy:
		i.background(func() { i.deleteBusy(i.machines[d.Target], d) })
		return
	case DeleteBusyPolicy:
		as := i.script.Policies[d.Target]
		i.background(func() { i.onceBusy(as.Name, d.What, func() bool { return i.deletePolicy(as, d) }) })
		return
	case WipeBusyStatus:
		name := i.script.Policies[d.Target].Name
		i.background(func() {
			i.onceBusy(name, d.What, func() bool { return process.Wait(i.ctx, d.For) && i.admin.wipeStatus(name) })
		})
		return
	default:
	}
	if i.strike(d) {
		i.counts.Add(string(d.What))
	}
}

func (i injector) strike(d Fault) bool {
	switch d.What {
	case StageUpdate:
		return i.machines[d.Target].stage()
	case LosePower:
		return i.machines[d.Target].losePower(i.ctx, d.For)
	case DeleteNode:
		return i.deleteNode(i.machines[d.Target], d)
	case DeletePolicy:
		return i.deletePolicy(i.script.Policies[d.Target], d)
	case WipeStatus:
		return i.admin.wipeStatus(i.script.Policies[d.Target].Name)
	case JumpClock:
		i.machines[d.Target].wrong.Store(int64(d.For))
	case KillAgent, FreezeAgent:
		return i.strikeAgent(i.machines[d.Target], d)
	case KillManager:
		return kill(i.replicas[d.Target].now())
	case FreezeManager:
		return i.replicas[d.Target].freeze(d.For)
	case Outage:
		i.outage(d.For)
	case Compact:
		i.store.Compact()
	case SetLimit, PausePolicy, ResumePolicy, EndHalt, DryRun, Enforce:
		return i.admin.editPolicy(i.script.Policies[d.Target].Name, d)
	default:
		return i.admin.editNode(i.script.Nodes[d.Target].Name, d)
	}
	return true
}

func (i injector) strikeAgent(m *machine, d Fault) bool {
	m.mu.Lock()
	p := m.agent
	m.mu.Unlock()
	if d.What == KillAgent {
		return kill(p)
	}
	if p == nil || !p.Alive() {
		return false
	}
	p.Freeze()
	i.background(func() {
		process.Wait(i.ctx, d.For)
		p.Thaw()
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
	i.conditions.cut()
	for _, r := range i.replicas {
		r.disconnect(d)
	}
	i.background(func() {
		process.Wait(i.ctx, d)
		i.conditions.restore()
	})
}

// recordon takes over the agent's cordon of a node, as soon as there is one within a day.
func (i injector) recordon(name string, after time.Duration) {
	for range int(day / recordonLook) {
		object, err := i.store.Get(apiserver.Key{Kind: apiserver.Nodes, Name: name})
		if node, ok := object.(*corev1.Node); err == nil && ok && cordonedBy(node, v1alpha1.FieldOwnerAgent) {
			if !i.admin.editNode(name, Fault{What: UncordonNode}) {
				return // the operator was faster
			}
			process.Wait(i.ctx, after)
			i.admin.editNode(name, Fault{What: CordonNode})
			i.counts.Add(string(Recordon))
			return
		}
		if !process.Wait(i.ctx, recordonLook) || i.conditions.isCalm() {
			return
		}
	}
}

// recordonLook is how often an administrator looks for a cordon to take over.
const recordonLook = 2 * time.Minute

func cordonedBy(node *corev1.Node, who string) bool {
	return node.Spec.Unschedulable && len(node.ManagedFields) > 0 && node.ManagedFields[0].Manager == who
}

// onceBusy strikes a policy as soon as it has granted something within three days.
func (i injector) onceBusy(name string, what What, strike func() bool) {
	for range int(3 * day / busyLook) {
		if policy := i.admin.policy(name); policy != nil && len(policy.Status.Grants) > 0 {
			if strike() {
				i.counts.Add(string(what))
			}
			return
		}
		if !process.Wait(i.ctx, busyLook) || i.conditions.isCalm() {
			return
		}
	}
}
