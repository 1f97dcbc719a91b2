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
)

const (
	// acceptance is the delay between a reboot call and the loss of power, and downtime how long
	// the power stays off.
	acceptance, downtime = 30 * time.Millisecond, 100 * time.Millisecond
	// returnsAfter is the time after a boot at which a need that returns is back.
	returnsAfter = time.Second
	// again is the delay before a played kubelet or administrator retries a write.
	again = 100 * time.Millisecond
)

// host is a machine with an agent and a kubelet. Network faults do not affect the kubelet.
type host struct {
	*machine.Machine

	run    *run
	number int
	dir    string
	// asked is the revision at the time of the last reboot call to logind.
	asked atomic.Int64
	// played means that a play uses this machine.
	played atomic.Bool

	mu    sync.Mutex
	name  string // of its Node
	agent *agent
}

// newHost returns a machine that is up.
func newHost(r *run, number int) (*host, error) {
	h := &host{
		run: r, number: number, name: fmt.Sprintf("s%d-n%02d", r.schedule.Seed, number), dir: filepath.Join(r.dir, fmt.Sprintf("machine-%02d", number)),
	}
	h.Machine = machine.New(h.name, filepath.Join(h.dir, "boot_id"), func(event judge.MachineEvent, boot string) {
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

// node returns the name of its Node.
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

// register creates the Node under the current name if it does not exist, as a kubelet does.
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
		h.Report(node, h.Ready())
		return client.IgnoreAlreadyExists(h.run.worker.objects.Create(ctx, node))
	})
}

// start starts an agent if the machine is up and none runs. The agent ends with the boot.
func (h *host) start(ctx context.Context) {
	h.mu.Lock()
	defer h.AtEnd(h.BootID(), h.kill) // after the unlock
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

// kill kills the agent, if one runs.
func (h *host) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agent != nil {
		h.agent.kill()
		h.agent = nil
	}
}

// wake triggers a reconcile of the agent, so that it notices the new time.
func (h *host) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agent != nil {
		h.agent.reconciler.Wake.Trigger()
	}
}

// goDown handles the reboot call of an agent: the power goes soon. It first records the current
// revision, because everything the agent wrote before the call counts.
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
	if !h.Halt(boot, judge.Rebooted) {
		return
	}
	h.post(ctx)
	pause(ctx, downtime)
	_, err := h.Boot()
	h.run.fail(err)
	h.post(ctx)
	h.run.back.Add(1)
	h.start(ctx)
	pause(ctx, returnsAfter)
	h.Return()
}

// post reports like a kubelet.
func (h *host) post(ctx context.Context) {
	insist(ctx, func() error {
		// The administrator may have deleted the Node.
		return client.IgnoreNotFound(h.Post(ctx, h.run.worker.objects, h.node()))
	})
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// insist retries a write until it succeeds or ctx ends.
func insist(ctx context.Context, write func() error) {
	for ctx.Err() == nil && write() != nil {
		pause(ctx, again)
	}
}
