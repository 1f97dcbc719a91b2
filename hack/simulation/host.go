package simulation

import (
	"context"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agenthost "github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/machine"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

const (
	kubelet = "kubelet"
	// graceOfNodes is the time a kubelet may be silent before the node controller sets its node's
	// Ready condition to Unknown.
	graceOfNodes = 40 * time.Second
)

// host is a machine with a kubelet and an agent.
type host struct {
	*machine.Machine
	program // runs the agent

	labels map[string]string
	// budget covers the pods on the host's Node.
	budget budget
	// upSince is the time of the boot that the uptime implies.
	upSince time.Time
	// power stops everything on the machine. Each boot has its own.
	power context.CancelFunc
}

func newHost(w *World, script NodeScript) *host {
	h := &host{
		program: program{world: w, name: script.Name, random: w.random("host", script.Name)}, labels: script.Labels, power: func() {}, budget: budget{changed: make(chan struct{})},
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
	h.setUptime(settled)
	ctx, power := context.WithCancel(h.world.ctx)
	h.mu.Lock()
	h.power = power
	h.mu.Unlock()
	if !h.IsIn(id) {
		power()
	}
	h.world.Go(func() {
		if process.Wait(ctx, returnsAfter) {
			h.Return()
		}
	})
	h.world.Go(func() {
		if process.Wait(ctx, h.random.Between(0, 10*time.Second)) {
			h.join(id, h.random.Chance(0.3))
		}
		if process.Wait(ctx, h.random.Between(0, 20*time.Second)) {
			h.join(id, false)
			h.run(ctx, "agent of "+h.name, h.runAgent)
		}
	})
}

// join does what a kubelet does when it starts. It registers the Node if it does not exist.
func (h *host) join(bootID string, starting bool) {
	status := corev1.ConditionTrue
	if starting {
		status = corev1.ConditionFalse
	}
	if h.IsIn(bootID) {
		h.world.register(h)
		h.reportReady(bootID, status)
	}
}

func (h *host) reportReady(bootID string, ready corev1.ConditionStatus) {
	apiserver.Change(h.world.store, h.name, kubelet, func(node *corev1.Node) {
		node.Status.NodeInfo.BootID = bootID
		setReady(node, ready, metav1.NewTime(h.Clock.Now()).Rfc3339Copy())
	})
}

func setReady(node *corev1.Node, status corev1.ConditionStatus, now metav1.Time) {
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if c.Type != corev1.NodeReady {
			continue
		}
		if c.Status != status {
			c.Status, c.LastTransitionTime = status, now
		}
		return
	}
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: corev1.NodeReady, Status: status, Reason: "Kubelet", LastTransitionTime: now, LastHeartbeatTime: now,
	})
}

// goDown ends the boot, and starts the next one after a while. It returns false if the boot has
// ended already.
func (h *host) goDown(bootID string, event judge.MachineEvent, down time.Duration) bool {
	if !h.Halt(bootID, event) {
		return false
	}
	h.cutPower()
	ctx := h.world.ctx
	h.world.Go(func() {
		if down > graceOfNodes && process.Wait(ctx, graceOfNodes) {
			if h.BootID() == bootID { // otherwise another machine has taken over the name
				h.reportReady(bootID, corev1.ConditionUnknown)
			}
			down -= graceOfNodes
		}
		if process.Wait(ctx, down) {
			h.world.must(h.boot())
		}
	})
	return true
}

// cutPower stops the kubelet and the agent of the machine.
func (h *host) cutPower() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.power()
}

// returnsAfter is the time after a boot at which a need that returns is back.
const returnsAfter = 5 * time.Minute

// longUp is the uptime of a host that begins to show it, and settled its uptime right after a boot.
// Agents do not wait for hosts that have been up for that long.
const longUp, settled = 10 * time.Hour, 3 * time.Minute

// showUptime shows the uptime to the agent until wanted returns false.
func (h *host) showUptime(wanted func() bool) {
	h.setUptime(longUp)
	for wanted() {
		h.mu.Lock()
		up := time.Since(h.upSince)
		h.mu.Unlock()
		h.world.must(h.SetUptime(up))
		if !process.Wait(h.world.ctx, time.Minute) {
			break
		}
	}
	_ = os.Remove(h.UptimeFile())
}

// setUptime sets the uptime of the host.
func (h *host) setUptime(up time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.upSince = time.Now().Add(-up)
	if h.ShowsUptime() {
		h.world.must(h.SetUptime(up))
	}
}

// logind is the machine's logind as seen by one agent.
type logind struct {
	*host
	agent  *process.Process
	random *process.Random
}

// BlockInhibitors implements reboot.Logind.
func (l logind) BlockInhibitors(context.Context) ([]agenthost.Inhibitor, error) { return nil, nil }

// Refuses implements reboot.Logind.
func (l logind) Refuses(context.Context) (string, error) { return "", nil }

// Logins implements reboot.Logind.
func (l logind) Logins(context.Context) ([]agenthost.Login, error) { return nil, nil }

// GoingDown implements reboot.Logind.
func (l logind) GoingDown(context.Context) (bool, error) {
	if !l.agent.Pass() {
		return false, process.ErrDead
	}
	return l.IsLeaving(), nil
}

// Reboot implements reboot.Logind. It may be refused, and the host takes a while to go down.
func (l logind) Reboot(context.Context, v1alpha1.Obstacle) error {
	w := l.world
	if !l.agent.Pass() {
		return process.ErrDead
	}
	if !w.calm.Load() && l.random.Chance(0.1) {
		return &agenthost.RefusedError{Name: "the operation was refused"}
	}
	id, accepted := l.Leave()
	if !accepted {
		return nil // this boot ends anyway
	}
	shutdown, down := l.host.random.Between(time.Second, time.Minute), l.host.random.Between(5*time.Second, w.script.Boot)
	w.Go(func() {
		if process.Wait(w.ctx, shutdown) {
			l.goDown(id, judge.Rebooted, down)
		}
	})
	return nil
}
