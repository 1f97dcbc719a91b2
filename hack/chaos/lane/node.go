package lane

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

// busy chooses a machine: rather one that is being drained or rebooted.
func (r *run) busy(target int) *machine {
	var names []string
	r.lane.world.read(func(w *world) {
		for name, node := range w.nodes {
			if !settled(node) {
				names = append(names, name)
			}
		}
	})
	slices.Sort(names)
	name := ""
	if len(names) > 0 && target%4 > 0 {
		name = names[target%len(names)]
	}
	start := target % len(r.machines)
	for i := range r.machines {
		m := r.machines[(start+i)%len(r.machines)]
		m.mu.Lock()
		fits := !m.gone && (name == "" || m.name == name)
		m.mu.Unlock()
		if fits {
			return m
		}
	}
	return r.machines[start]
}

func (r *run) strikeNode(step schedule.Step) {
	m := r.busy(step.Target)
	if step.Kind == schedule.AdminCordons {
		r.cordon(m, step)
		return
	}
	m.mu.Lock()
	name := m.name
	if m.gone {
		m.mu.Unlock()
		return
	}
	switch step.Kind {
	case schedule.NodeDeleted:
		m.gone = true
		r.note(m.number, judge.Scrapped, "")
	case schedule.NodeRenamed:
		m.name = name + "-renamed"
	default:
	}
	m.mu.Unlock()
	if step.Kind != schedule.NodeRegisteredAnew {
		m.kill()
	}
	r.count(step.Kind, 1)
	r.deleteNode(name)
	switch step.Kind {
	case schedule.NodeDeleted:
		r.removePods(name)
		return
	case schedule.NodeRenamed:
		r.removePods(name)
	default:
	}
	pause(r.ctx, step.For/4)
	m.registerAnew(r.ctx)
	if step.Kind == schedule.NodeRenamed {
		m.mu.Lock()
		up := !m.down && m.agent == nil
		m.mu.Unlock()
		if up {
			m.start(r.ctx)
		}
	}
}

func (r *run) deleteNode(name string) {
	r.insist(r.ctx, func() error {
		err := r.lane.api.CoreV1().Nodes().Delete(r.ctx, name, metav1.DeleteOptions{})
		return client.IgnoreNotFound(err)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cordons = append(r.cordons, cordon{node: name})
}

// removePods removes the pods of a machine that is gone, as the garbage collector of pods does.
func (r *run) removePods(node string) {
	var pods []*corev1.Pod
	r.lane.world.read(func(w *world) {
		for _, pod := range w.pods {
			if pod.Spec.NodeName == node {
				pods = append(pods, pod)
			}
		}
	})
	for _, pod := range pods {
		r.mu.Lock()
		r.removed[string(pod.UID)] = true
		r.mu.Unlock()
		r.insist(r.ctx, func() error { return r.deletePod(pod) })
	}
}

// deletePod removes a pod for good; one that is gone already is what is wanted.
func (r *run) deletePod(pod *corev1.Pod) error {
	err := r.lane.api.CoreV1().Pods(pod.Namespace).Delete(r.ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// cordon is an administrator who cordons a node that is not cordoned: on one that is, kubectl writes nothing.
func (r *run) cordon(m *machine, step schedule.Step) {
	m.mu.Lock()
	name := m.name
	m.mu.Unlock()
	if len(r.admins()) > 0 {
		return // one is enough: it takes a slot
	}
	node, err := r.lane.api.CoreV1().Nodes().Get(r.ctx, name, metav1.GetOptions{})
	if err != nil || node.Spec.Unschedulable {
		return
	}
	text := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"unschedulable":true}}`, node.ResourceVersion)
	node, err = r.lane.api.CoreV1().Nodes().Patch(r.ctx, name, types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{FieldManager: "kubectl-cordon"})
	if err != nil {
		return // somebody was faster, and the administrator shrugs
	}
	r.count(step.Kind, 1)
	var revision int64
	_, err = fmt.Sscan(node.ResourceVersion, &revision)
	r.failIf(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cordons = append(r.cordons, cordon{revision: revision, node: name, on: true})
}

// admins are the nodes that stay cordoned.
func (r *run) admins() []string {
	var names []string
	for name, on := range r.cordoned() {
		if on {
			names = append(names, name)
		}
	}
	return names
}
