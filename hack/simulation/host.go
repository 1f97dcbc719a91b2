package simulation

import (
	"context"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	agenthost "github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/machine"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// graceOfNodes is the time a kubelet may be silent before the node controller sets its node's Ready
// condition to Unknown.
const graceOfNodes = 40 * time.Second

// host is a machine with a kubelet and an agent.
type host struct {
	*machine.Machine
	program // runs the agent

	labels map[string]string
	// budget covers the pods on the host's Node.
	budget budget
}

func newHost(w *World, script NodeScript) *host {
	h := &host{
		program: program{world: w, name: script.Name, random: w.random("host", script.Name)}, labels: script.Labels, budget: budget{changed: make(chan struct{})},
	}
	h.Machine = machine.New(h.name, filepath.Join(w.folder, h.name), func(event judge.MachineEvent, boot string) {
		w.record(judge.Change{At: time.Now(), Name: h.name, Host: event, Boot: boot})
	})
	return h
}

// boot boots the machine, and starts its kubelet and agent.
func (h *host) boot() error {
	id, err := h.Boot()
	if err == nil && id != "" {
		h.comeUp(id)
	}
	return err
}

// comeUp begins what a machine does in a boot.
func (h *host) comeUp(id string) {
	ctx, power := context.WithCancel(h.world.ctx)
	h.AtEnd(id, power)
	h.world.Go(func() {
		if process.Wait(ctx, returnsAfter) {
			h.Return()
		}
	})
	h.world.Go(func() {
		if process.Wait(ctx, h.random.Between(0, 10*time.Second)) {
			ready := corev1.ConditionTrue
			if h.random.Chance(0.3) {
				ready = corev1.ConditionFalse
			}
			h.join(id, ready)
		}
		if process.Wait(ctx, h.random.Between(0, 20*time.Second)) {
			h.join(id, corev1.ConditionTrue)
			h.run(ctx, "agent of "+h.name, h.runAgent)
		}
	})
}

// join does what a kubelet does when it starts. It registers the Node if it does not exist.
func (h *host) join(bootID string, ready corev1.ConditionStatus) {
	if h.IsIn(bootID) {
		h.world.register(h)
		h.report(ready)
	}
}

func (h *host) report(ready corev1.ConditionStatus) {
	apiserver.Change(h.world.store, h.name, machine.Kubelet, func(node *corev1.Node) { h.Report(node, ready) })
}

// goDown ends the boot, and starts the next one after a while. It returns false if the boot has
// ended already.
func (h *host) goDown(bootID string, event judge.MachineEvent, down time.Duration) bool {
	if !h.Halt(bootID, event) {
		return false
	}
	ctx := h.world.ctx
	h.world.Go(func() {
		if down > graceOfNodes && process.Wait(ctx, graceOfNodes) {
			if h.BootID() == bootID { // otherwise another machine has taken over the name
				h.report(corev1.ConditionUnknown)
			}
			down -= graceOfNodes
		}
		if process.Wait(ctx, down) {
			h.world.must(h.boot())
		}
	})
	return true
}

// returnsAfter is the time after a boot at which a need that returns is back.
const returnsAfter = 5 * time.Minute

// showUptime shows the uptime to the agent until wanted returns false.
func (h *host) showUptime(wanted func() bool) {
	h.world.must(h.SetUptime(machine.LongUp))
	for wanted() {
		h.world.must(h.Tick())
		if !process.Wait(h.world.ctx, time.Minute) {
			break
		}
	}
	_ = os.Remove(h.UptimeFile())
}

// logind returns the machine's logind as seen by one agent. A reboot may be refused, and the host
// takes a while to go down.
func (h *host) logind(agent *process.Process) machine.Logind {
	w, random := h.world, h.world.random("logind", h.name, agent.Name)
	return machine.Logind{
		Machine: h.Machine,
		Pass: func(context.Context) error {
			if !agent.Pass() {
				return process.ErrDead
			}
			return nil
		},
		Call: func() error {
			if !w.calm.Load() && random.Chance(0.1) {
				return &agenthost.RefusedError{Name: "the operation was refused"}
			}
			id, accepted := h.Leave()
			if !accepted {
				return nil // this boot ends anyway
			}
			shutdown, down := h.random.Between(time.Second, time.Minute), h.random.Between(5*time.Second, w.script.Boot)
			w.Go(func() {
				if process.Wait(w.ctx, shutdown) {
					h.goDown(id, judge.Rebooted, down)
				}
			})
			return nil
		},
	}
}
