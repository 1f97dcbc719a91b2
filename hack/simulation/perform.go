package simulation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// perform does the deeds of the script, each at its time.
func (w *World) perform() {
	began := time.Now()
	for _, deed := range w.script.Deeds {
		if !process.Wait(w.ctx, time.Until(began.Add(deed.At))) {
			return
		}
		w.do(deed)
	}
	process.Wait(w.ctx, time.Until(began.Add(w.script.Faulty)))
}

// do does a deed, and counts it where it struck: a machine that is down loses no power.
func (w *World) do(d Deed) {
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

func (w *World) strike(d Deed) bool {
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

func (w *World) strikeAgent(m *machine, d Deed) bool {
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
func (w *World) outage(d time.Duration) {
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
func (w *World) recordon(name string, after time.Duration) {
	for range int(day / recordonLook) {
		object, err := w.store.Get(apiserver.Key{Kind: apiserver.Nodes, Name: name})
		if node, ok := object.(*corev1.Node); err == nil && ok && cordonedBy(node, v1alpha1.FieldOwnerAgent) {
			if !w.editNode(name, Deed{What: UncordonNode}) {
				return // the operator was faster
			}
			process.Wait(w.ctx, after)
			w.editNode(name, Deed{What: CordonNode})
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

func (w *World) editNode(name string, d Deed) bool {
	return w.changeNode(name, func(node *corev1.Node) {
		switch d.What {
		case RequestReboot:
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, v1alpha1.AnnotationRebootRequested, "because")
		case CordonNode:
			node.Spec.Unschedulable = true
		case UncordonNode:
			node.Spec.Unschedulable = false
		case Relabel:
			at := slices.Index(w.script.Pools, node.Labels[labelPool])
			metav1.SetMetaDataLabel(&node.ObjectMeta, labelPool, w.script.Pools[(at+d.Number)%len(w.script.Pools)])
		case PauseNode:
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, v1alpha1.AnnotationPaused, "true")
		case ResumeNode:
			delete(node.Annotations, v1alpha1.AnnotationPaused)
		default:
		}
	})
}

func (w *World) changeNode(name string, change func(*corev1.Node)) bool {
	return w.store.Change(apiserver.Key{Kind: apiserver.Nodes, Name: name}, judge.Admin, func(object client.Object) {
		node, _ := object.(*corev1.Node)
		change(node)
	})
}

func (w *World) editPolicy(name string, d Deed) bool {
	return w.store.Change(apiserver.Key{Kind: apiserver.Policies, Name: name}, judge.Admin, func(object client.Object) {
		policy, _ := object.(*v1alpha1.RebootPolicy)
		switch spec := &policy.Spec; d.What {
		case SetLimit:
			spec.Concurrency.MaxUnavailable = new(intstr.FromInt32(int32(d.Number)))
		case PausePolicy:
			until := metav1.NewTime(time.Now().Add(d.For)).Rfc3339Copy()
			spec.Pause = &v1alpha1.Pause{Reason: "because", Until: &until}
		case ResumePolicy:
			spec.Pause = nil
		case DryRun:
			spec.Mode = v1alpha1.ModeDryRun
		case Enforce:
			spec.Mode = v1alpha1.ModeEnforce
		case EndHalt:
			if halted(policy) {
				metav1.SetMetaDataAnnotation(&policy.ObjectMeta, v1alpha1.AnnotationResume, "because")
			}
		default:
		}
	})
}
