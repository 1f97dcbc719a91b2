package simulation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// injector carries out the faults of a script.
type injector struct{ *World }

// perform carries out the faults at their times.
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

// strikes maps each kind of fault to its function, which returns false if it had nothing to
// strike, such as the power of a machine that is down.
var strikes = map[What]func(injector, Fault) bool{
	KillManager:   func(i injector, d Fault) bool { return i.replicas[d.Target].kill() },
	FreezeManager: func(i injector, d Fault) bool { return i.replicas[d.Target].freeze(d.For) },
	Outage:        injector.outage,
	Compact:       func(i injector, _ Fault) bool { i.store.Compact(); return true },

	StageUpdate:   ofHost(func(_ injector, h *host, _ Fault) bool { return h.Stage() }),
	LosePower:     ofHost(injector.losePower),
	JumpClock:     ofHost(func(_ injector, h *host, d Fault) bool { h.Clock.Set(d.For); return true }),
	KillAgent:     ofHost(func(_ injector, h *host, _ Fault) bool { return h.kill() }),
	FreezeAgent:   ofHost(injector.freezeAgent),
	DeleteNode:    ofHost(injector.deleteNode),
	DeleteBusy:    ofHost(injector.deleteBusy),
	Recordon:      ofHost(injector.recordon),
	Relabel:       ofHost(injector.relabel),
	CordonNode:    ofHost(func(i injector, h *host, _ Fault) bool { return i.cordon(h, true) }),
	UncordonNode:  ofHost(func(i injector, h *host, _ Fault) bool { return i.cordon(h, false) }),
	RequestReboot: annotate(v1alpha1.AnnotationRebootRequested, "because"),
	PauseNode:     annotate(v1alpha1.AnnotationPaused, "true"),
	ResumeNode:    ofHost(func(i injector, h *host, _ Fault) bool { return apiserver.Change(i.store, h.name, judge.Admin, resume) }),

	DeletePolicy: ofPolicy(injector.deletePolicy),
	DeleteBusyPolicy: ofPolicy(func(i injector, as *v1alpha1.RebootPolicy, d Fault) bool {
		return i.granted(as, 0) && i.deletePolicy(as, d)
	}),
	WipeStatus: edit(wipe),
	WipeBusyStatus: ofPolicy(func(i injector, as *v1alpha1.RebootPolicy, d Fault) bool {
		return i.granted(as, d.For) && edit(wipe)(i, d)
	}),
	SetLimit: edit(func(policy *v1alpha1.RebootPolicy, d Fault) {
		policy.Spec.Concurrency.MaxUnavailable = new(intstr.FromInt32(int32(d.Number)))
	}),
	PausePolicy: edit(func(policy *v1alpha1.RebootPolicy, d Fault) {
		policy.Spec.Pause = &v1alpha1.Pause{Reason: "because", Until: new(metav1.NewTime(time.Now().Add(d.For)).Rfc3339Copy())}
	}),
	ResumePolicy: edit(func(policy *v1alpha1.RebootPolicy, _ Fault) { policy.Spec.Pause = nil }),
	DryRun:       edit(func(policy *v1alpha1.RebootPolicy, _ Fault) { policy.Spec.Mode = v1alpha1.ModeDryRun }),
	Enforce:      edit(func(policy *v1alpha1.RebootPolicy, _ Fault) { policy.Spec.Mode = v1alpha1.ModeEnforce }),
	EndHalt:      edit(endHalt),

	CloseBudget:     ofHost(injector.closeBudget),
	Restore:         ofHost(injector.restore),
	KeepBootID:      ofHost(injector.keepBootID),
	LetNeedReturn:   ofHost(injector.letNeedReturn),
	FillAnnotations: ofHost(injector.fillAnnotations),
	StripGrants:     ofHost(injector.stripGrants),
}

func ofHost(strike func(injector, *host, Fault) bool) func(injector, Fault) bool {
	return func(i injector, d Fault) bool { return strike(i, i.hosts[d.Target], d) }
}

func annotate(key, value string) func(injector, Fault) bool {
	return ofHost(func(i injector, h *host, _ Fault) bool {
		return apiserver.Change(i.store, h.name, judge.Admin, func(node *corev1.Node) { metav1.SetMetaDataAnnotation(&node.ObjectMeta, key, value) })
	})
}

func ofPolicy(strike func(injector, *v1alpha1.RebootPolicy, Fault) bool) func(injector, Fault) bool {
	return func(i injector, d Fault) bool { return strike(i, i.script.Policies[d.Target], d) }
}

func edit(change func(*v1alpha1.RebootPolicy, Fault)) func(injector, Fault) bool {
	return ofPolicy(func(i injector, as *v1alpha1.RebootPolicy, d Fault) bool {
		return apiserver.Change(i.store, as.Name, judge.Admin, func(policy *v1alpha1.RebootPolicy) { change(policy, d) })
	})
}

// do carries out a fault, and counts it if it struck.
func (i injector) do(d Fault) {
	strike := func() {
		if strikes[d.What](i, d) {
			i.counts.Add(string(d.What))
		}
	}
	switch d.What {
	case Recordon, DeleteBusy, DeleteBusyPolicy, WipeBusyStatus:
		i.Go(strike) // they wait for their target
	default:
		strike()
	}
}

func (i injector) cordon(h *host, on bool) bool {
	return apiserver.Change(i.store, h.name, judge.Admin, func(node *corev1.Node) { node.Spec.Unschedulable = on })
}

// relabel moves a node to another pool.
func (i injector) relabel(h *host, d Fault) bool {
	pools := i.script.Pools
	return apiserver.Change(i.store, h.name, judge.Admin, func(node *corev1.Node) {
		index := slices.Index(pools, node.Labels[labelPool])
		metav1.SetMetaDataLabel(&node.ObjectMeta, labelPool, pools[(index+d.Number)%len(pools)])
	})
}

func resume(node *corev1.Node) { delete(node.Annotations, v1alpha1.AnnotationPaused) }

func endHalt(policy *v1alpha1.RebootPolicy, _ Fault) {
	if meta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ConditionHalted) {
		metav1.SetMetaDataAnnotation(&policy.ObjectMeta, v1alpha1.AnnotationResume, "because")
	}
}

// wipe removes everything from a status that the API server allows to remove.
func wipe(policy *v1alpha1.RebootPolicy, _ Fault) {
	policy.Status = v1alpha1.RebootPolicyStatus{Seq: policy.Status.Seq, Limit: policy.Status.Limit}
}

// losePower leaves out machines that keep their boot ID, because their agents cannot detect a boot
// during a drain.
func (i injector) losePower(h *host, d Fault) bool {
	if h.KeepsBootID() {
		return false
	}
	h.Repair()
	return h.goDown(h.BootID(), judge.Lost, d.For)
}

// freezeAgent pauses an agent for a while.
func (i injector) freezeAgent(h *host, d Fault) bool {
	p := h.now()
	if p == nil {
		return false
	}
	p.Hold()
	i.Go(func() {
		process.Wait(i.ctx, d.For)
		p.Release()
	})
	return true
}

// outage makes all requests fail for a while. A leader that cannot renew its lease exits.
func (i injector) outage(d Fault) bool {
	i.outages.Add(1)
	for _, r := range i.replicas {
		r.disconnect(d.For)
	}
	i.Go(func() {
		process.Wait(i.ctx, d.For)
		i.outages.Add(-1)
	})
	return true
}

// recordonLook is the interval at which an administrator looks for a cordon to take over.
const recordonLook = 2 * time.Minute

// recordon takes over the agent's cordon of a node if one appears within a day.
func (i injector) recordon(h *host, d Fault) bool {
	cordoned := i.await(recordonLook, day, func() bool {
		node, ok := apiserver.Read[*corev1.Node](i.store, h.name)
		return ok && cordonedBy(node, v1alpha1.FieldOwnerAgent)
	})
	if !cordoned || !i.cordon(h, false) { // the operator may be faster
		return false
	}
	process.Wait(i.ctx, d.For)
	i.cordon(h, true)
	return true
}

func cordonedBy(node *corev1.Node, who string) bool {
	return node.Spec.Unschedulable && len(node.ManagedFields) > 0 && node.ManagedFields[0].Manager == who
}

// await polls a condition, and reports whether it became true within a time and before the faults
// end.
func (i injector) await(every, within time.Duration, so func() bool) bool {
	for range int(within / every) {
		if so() {
			return true
		}
		if !process.Wait(i.ctx, every) || i.calm.Load() {
			return false
		}
	}
	return false
}

const (
	// alone is the highest fault number at which a deleted Node keeps its machine. At number never,
	// no other machine replaces it.
	alone = 2
	never = 5
	// oldImage is the fault number at which the replacement machine has an old image, and therefore
	// soon an update.
	oldImage = 4
	// busyLook is the interval at which a fault looks for a busy node or policy, for at most
	// busyWithin.
	busyLook, busyWithin = time.Minute, 3 * day
)

// deleteNode deletes a Node. Either its kubelet registers it again, or the machine goes too and may
// be replaced. It returns false if the Node does not exist.
func (i injector) deleteNode(h *host, d Fault) bool {
	if i.store.Delete(apiserver.Key{Kind: apiserver.Nodes, Name: h.name}, judge.Admin) != nil {
		return false
	}
	h.Repair() // what is known of a need that returns goes with the Node
	if d.Number > alone {
		h.Scrap()
	}
	i.Go(func() {
		switch {
		case !process.Wait(i.ctx, d.For), d.Number == never:
		case d.Number > alone:
			h.Provide()
			i.must(h.boot())
			if process.Wait(i.ctx, h.random.Between(0, 20*time.Minute)) && d.Number == oldImage {
				h.Stage()
			}
		default:
			h.join(h.BootID(), corev1.ConditionTrue)
		}
	})
	return true
}

// deleteBusy deletes a Node while its agent is at work.
func (i injector) deleteBusy(h *host, d Fault) bool {
	return i.await(busyLook, busyWithin, func() bool {
		node, ok := apiserver.Read[*corev1.Node](i.store, h.name)
		return ok && judge.Outstanding(node) && node.Annotations[v1alpha1.AnnotationProgress] != ""
	}) && process.Wait(i.ctx, h.random.Between(0, 2*busyLook)) && i.deleteNode(h, d)
}

// granted waits until a policy has granted something and a while longer, and reports whether it
// has.
func (i injector) granted(as *v1alpha1.RebootPolicy, after time.Duration) bool {
	return i.await(busyLook, busyWithin, func() bool {
		policy, ok := apiserver.Read[*v1alpha1.RebootPolicy](i.store, as.Name)
		return ok && len(policy.Status.Grants) > 0
	}) && process.Wait(i.ctx, after)
}

// deletePolicy deletes a policy, and creates it again in its original form once it is gone. It
// returns false if the policy does not exist.
func (i injector) deletePolicy(as *v1alpha1.RebootPolicy, d Fault) bool {
	if i.store.Delete(apiserver.Key{Kind: apiserver.Policies, Name: as.Name}, judge.Admin) != nil {
		return false
	}
	i.Go(func() {
		for wait := d.For; process.Wait(i.ctx, wait); wait = time.Minute {
			switch policy, ok := apiserver.Read[*v1alpha1.RebootPolicy](i.store, as.Name); {
			case !ok:
				i.makePolicy(as)
				return
			case policy.DeletionTimestamp == nil:
				return // another fault has created it
			}
		}
	})
	return true
}
