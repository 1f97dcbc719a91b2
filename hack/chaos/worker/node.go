package worker

import (
	"slices"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

// busy chooses a machine: rather one that is being drained or rebooted.
func (i *injector) busy(target int) *machine {
	var names []string
	i.worker.world.read(func(w *world) {
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
	start := target % len(i.machines)
	for n := range i.machines {
		m := i.machines[(start+n)%len(i.machines)]
		m.mu.Lock()
		fits := !m.gone && (name == "" || m.name == name)
		m.mu.Unlock()
		if fits {
			return m
		}
	}
	return i.machines[start]
}

func (i *injector) strikeNode(step schedule.Step) {
	m := i.busy(step.Target)
	if step.Kind == schedule.AdminCordons {
		i.cordon(m)
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
		m.run.note(m.number, judge.Scrapped, "", 0)
	case schedule.NodeRenamed:
		m.name = name + "-renamed"
	default:
	}
	m.mu.Unlock()
	if step.Kind != schedule.NodeRegisteredAnew {
		m.kill()
	}
	i.count(step.Kind, 1)
	i.admin.deleteNode(i.ctx, name)
	switch step.Kind {
	case schedule.NodeDeleted:
		i.pods.removePods(name)
		return
	case schedule.NodeRenamed:
		i.pods.removePods(name)
	default:
	}
	pause(i.ctx, step.For/4)
	m.registerAnew(i.ctx)
	if step.Kind == schedule.NodeRenamed {
		m.mu.Lock()
		up := !m.down && m.agent == nil
		m.mu.Unlock()
		if up {
			m.start(i.ctx)
		}
	}
}

// cordon has an administrator cordon the node of a machine.
func (i *injector) cordon(m *machine) {
	m.mu.Lock()
	name := m.name
	m.mu.Unlock()
	done, err := i.admin.cordon(i.ctx, name)
	if done {
		i.count(schedule.AdminCordons, 1)
	}
	i.failIf(err)
}
