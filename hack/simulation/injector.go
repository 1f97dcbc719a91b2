package simulation

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// injector does to a world what its script reports: what an administrator or chance would do.
type injector struct{ admin }

// perform does the faults of the script, each at its time.
func (w injector) perform() {
	began := time.Now()
	for _, fault := range w.script.Faults {
		if !process.Wait(w.ctx, time.Until(began.Add(fault.At))) {
			return
		}
		w.do(fault)
	}
	process.Wait(w.ctx, time.Until(began.Add(w.script.Faulty)))
}

// do does a fault, and counts it where it struck: a machine that is down loses no power.
func (w injector) do(d Fault) {
	switch d.What {
	case Recordon:
		w.Go(func() { w.recordon(w.script.Nodes[d.Target].Name, d.For) })
		return
	case DeleteBusy:
		w.Go(func() { w.deleteBusy(w.machines[d.Target], d) })
		return
	case DeleteBusyPolicy:
		as := w.script.Policies[d.Target]
		w.Go(func() { w.onceBusy(as.Name, d.What, func() bool { return w.deletePolicy(as, d) }) })
		return
	case WipeBusyStatus:
		name := w.script.Policies[d.Target].Name
		w.Go(func() {
			w.onceBusy(name, d.What, func() bool { return process.Wait(w.ctx, d.For) && w.wipeStatus(name) })
		})
		return
	default:
	}
	if w.strike(d) {
		w.counts.Add(string(d.What))
	}
}

func (w injector) strike(d Fault) bool {
	switch d.What {
	case StageUpdate:
		return w.machines[d.Target].stage()
	case LosePower:
		return w.machines[d.Target].losePower(w.ctx, d.For)
	case DeleteNode:
		return w.deleteNode(w.machines[d.Target], d)
	case DeletePolicy:
		return w.deletePolicy(w.script.Policies[d.Target], d)
	case WipeStatus:
		return w.wipeStatus(w.script.Policies[d.Target].Name)
	case JumpClock:
		w.machines[d.Target].wrong.Store(int64(d.For))
	case KillAgent, FreezeAgent:
		return w.strikeAgent(w.machines[d.Target], d)
	case KillManager:
		return kill(w.replicas[d.Target].now())
	case FreezeManager:
		return w.replicas[d.Target].freeze(d.For)
	case Outage:
		w.outage(d.For)
	case Compact:
		w.store.Compact()
	case SetLimit, PausePolicy, ResumePolicy, EndHalt, DryRun, Enforce:
		return w.editPolicy(w.script.Policies[d.Target].Name, d)
	default:
		return w.editNode(w.script.Nodes[d.Target].Name, d)
	}
	return true
}

func (w injector) strikeAgent(m *machine, d Fault) bool {
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
	w.Go(func() {
		process.Wait(w.ctx, d.For)
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
func (w injector) outage(d time.Duration) {
	w.mu.Lock()
	w.down++
	w.mu.Unlock()
	for _, r := range w.replicas {
		r.disconnect(d)
	}
	w.Go(func() {
		process.Wait(w.ctx, d)
		w.mu.Lock()
		w.down--
		w.mu.Unlock()
	})
}

// recordon takes over the agent's cordon of a node, as soon as there is one within a day.
func (w injector) recordon(name string, after time.Duration) {
	for range int(day / recordonLook) {
		object, err := w.store.Get(apiserver.Key{Kind: apiserver.Nodes, Name: name})
		if node, ok := object.(*corev1.Node); err == nil && ok && cordonedBy(node, v1alpha1.FieldOwnerAgent) {
			if !w.editNode(name, Fault{What: UncordonNode}) {
				return // the operator was faster
			}
			process.Wait(w.ctx, after)
			w.editNode(name, Fault{What: CordonNode})
			w.counts.Add(string(Recordon))
			return
		}
		if !process.Wait(w.ctx, recordonLook) || w.isCalm() {
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
func (w injector) onceBusy(name string, what What, strike func() bool) {
	for range int(3 * day / busyLook) {
		if policy := w.policy(name); policy != nil && len(policy.Status.Grants) > 0 {
			if strike() {
				w.counts.Add(string(what))
			}
			return
		}
		if !process.Wait(w.ctx, busyLook) || w.isCalm() {
			return
		}
	}
}
