package worker

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

// busy chooses a machine: rather one that is being drained or rebooted.
func (r injector) busy(target int) *machine {
	var names []string
	r.worker.world.read(func(w *world) {
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

func (r injector) strikeNode(step schedule.Step) {
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

func (r injector) deleteNode(name string) {
	r.insist(r.ctx, func() error {
		err := r.worker.api.CoreV1().Nodes().Delete(r.ctx, name, metav1.DeleteOptions{})
		return client.IgnoreNotFound(err)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cordons = append(r.cordons, cordon{node: name})
}

// cordon is an administrator who cordons a node that is not cordoned: on one that is, kubectl writes nothing.
func (r injector) cordon(m *machine, step schedule.Step) {
	m.mu.Lock()
	name := m.name
	m.mu.Unlock()
	if len(r.admins()) > 0 {
		return // one is enough: it takes a slot
	}
	node, err := r.worker.api.CoreV1().Nodes().Get(r.ctx, name, metav1.GetOptions{})
	if err != nil || node.Spec.Unschedulable {
		return
	}
	text := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"unschedulable":true}}`, node.ResourceVersion)
	node, err = r.worker.api.CoreV1().Nodes().Patch(r.ctx, name, types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{FieldManager: "kubectl-cordon"})
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
