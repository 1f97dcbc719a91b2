package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/machine"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

const (
	// acceptance is how long after logind's yes the power goes, downtime how long it stays away.
	acceptance, downtime = 30 * time.Millisecond, 100 * time.Millisecond
	// again is how soon a kubelet, or whoever plays one, tries a write again.
	again = 100 * time.Millisecond
)

// host is a machine with a kubelet that no fault of the network reaches, and an agent.
type host struct {
	*machine.Machine

	run    *run
	number int
	dir    string
	// asked is the revision by which logind was asked last.
	asked atomic.Int64

	mu    sync.Mutex
	name  string // its Node's
	agent *agent
}

// newHost makes one that is up.
func newHost(r *run, number int) (*host, error) {
	h := &host{
		run: r, number: number, name: fmt.Sprintf("s%d-n%02d", r.schedule.Seed, number), dir: filepath.Join(r.dir, fmt.Sprintf("machine-%02d", number)),
	}
	h.Machine = machine.New(h.name, h.bootFile(), func(event judge.MachineEvent, boot string) {
		r.note(number, event, boot, h.asked.Load())
	})
	h.Clock.Set(r.offset())
	if err := os.MkdirAll(filepath.Join(h.dir, "etc"), 0o700); err != nil {
		return nil, fmt.Errorf("making the root of a machine: %w", err)
	}
	release := "ID=chaos\nVERSION_ID=1\n"
	_, err := h.Boot()
	return h, errors.Join(os.WriteFile(filepath.Join(h.dir, "etc", "os-release"), []byte(release), 0o600), err)
}

func (h *host) bootFile() string { return filepath.Join(h.dir, "boot_id") }

// node is the name of its Node.
func (h *host) node() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.name
}

func (h *host) rename(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.name = name
}

// register creates the machine's Node, as a kubelet does that finds none, under whatever name it has now.
func (h *host) register(ctx context.Context) {
	insist(ctx, func() error {
		if h.IsScrapped() {
			return nil
		}
		name := h.node()
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		if h.number%2 == 1 {
			node.Labels[pool] = second
		}
		node.Status.NodeInfo.BootID = h.BootID()
		node.Status.Conditions = []corev1.NodeCondition{h.ready()}
		return client.IgnoreAlreadyExists(h.run.worker.objects.Create(ctx, node))
	})
}

// start starts an agent for the machine where it is up and none runs.
func (h *host) start(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.IsUp() || h.agent != nil || ctx.Err() != nil {
		return
	}
	a, err := startAgent(ctx, h, h.name, h.run.worker.log)
	if err != nil {
		h.run.fail(err)
		return
	}
	h.agent = a
}

// kill ends the agent, if one runs.
func (h *host) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agent != nil {
		h.agent.kill()
		h.agent = nil
	}
}

// wake has the agent look at the time again.
func (h *host) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agent != nil {
		h.agent.reconciler.Wake.Trigger()
	}
}

// goDown is logind's answer to an agent: the power goes soon. What the agent has written until it asked counts.
func (h *host) goDown(a *agent) error {
	asked := h.run.present()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agent != a || h.run.ctx.Err() != nil {
		return errors.New("the agent is dead")
	}
	if boot, accepted := h.Leave(); accepted {
		h.asked.Store(asked)
		h.run.agents.Go(func() { h.powerCycle(h.run.ctx, boot) })
	}
	return nil
}

func (h *host) powerCycle(ctx context.Context, boot string) {
	pause(ctx, acceptance)
	halted := h.Halt(boot, judge.Rebooted)
	h.kill()
	if !halted {
		return
	}
	h.post(ctx)
	pause(ctx, downtime)
	if _, err := h.Boot(); err != nil {
		h.run.fail(err)
	}
	h.post(ctx)
	h.run.back.Add(1)
	h.start(ctx)
}

// post writes what a kubelet reports: Ready or not, and in which boot.
func (h *host) post(ctx context.Context) {
	insist(ctx, func() error {
		// An administrator may have deleted it.
		return client.IgnoreNotFound(testenv.Report(ctx, h.run.worker.objects, h.node(), h.BootID(), h.ready()))
	})
}

// ready is the condition as it is now. Of a machine without power the node controller reports that it is Unknown.
func (h *host) ready() corev1.NodeCondition {
	status := corev1.ConditionTrue
	if !h.IsUp() {
		status = corev1.ConditionUnknown
	}
	return testenv.Ready(status, "Chaos", "", h.Clock.Now())
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// insist tries a write until it succeeds or ctx ends: whoever makes it would.
func insist(ctx context.Context, write func() error) {
	for ctx.Err() == nil && write() != nil {
		pause(ctx, again)
	}
}
