package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/reboot-operator/reboot-operator/hack/judge"
)

const (
	// acceptance is how long after logind's yes the power goes, downtime how long it stays away.
	acceptance, downtime = 30 * time.Millisecond, 100 * time.Millisecond
	// again is how soon a kubelet, or whoever plays one, tries a write again.
	again = 100 * time.Millisecond
)

// machine is a simulated one, with a kubelet that no fault of the network reaches, and an agent.
type machine struct {
	run    *run
	number int
	dir    string
	clock  agentClock

	mu     sync.Mutex
	name   string // its Node's
	boot   string
	needed bool
	// running counts the updates that took effect.
	running int
	// down: logind has accepted, until it is up again. gone: for good.
	down, gone bool
	agent      *agent
}

func newMachine(r *run, number int) (*machine, error) {
	m := &machine{
		run: r, number: number, name: fmt.Sprintf("s%d-n%02d", r.schedule.Seed, number), boot: string(uuid.NewUUID()),
		dir: filepath.Join(r.dir, fmt.Sprintf("machine-%02d", number)),
	}
	m.clock.offset.Store(r.clocks.offset.Load())
	if err := os.MkdirAll(filepath.Join(m.dir, "etc"), 0o700); err != nil {
		return nil, fmt.Errorf("making the root of a machine: %w", err)
	}
	release := "ID=chaos\nVERSION_ID=1\n"
	return m, errors.Join(os.WriteFile(filepath.Join(m.dir, "etc", "os-release"), []byte(release), 0o600), m.writeBoot())
}

func (m *machine) writeBoot() error {
	if err := os.WriteFile(m.bootFile(), []byte(m.boot+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing a boot ID: %w", err)
	}
	return nil
}

// register creates the machine's Node, as a kubelet does that finds none.
func (m *machine) register(ctx context.Context) {
	insist(ctx, func() error {
		m.mu.Lock()
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: map[string]string{corev1.LabelHostname: m.name}}}
		if m.number%2 == 1 {
			node.Labels[pool] = second
		}
		node.Status.NodeInfo.BootID = m.boot
		node.Status.Conditions = []corev1.NodeCondition{m.ready(corev1.ConditionTrue)}
		gone := m.gone
		m.mu.Unlock()
		if gone {
			return nil
		}
		_, err := m.run.worker.api.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// registerAnew registers the machine under whatever name it has now, in whatever boot it is by then.
func (m *machine) registerAnew(ctx context.Context) {
	m.register(ctx)
	m.mu.Lock()
	status := corev1.ConditionTrue
	if m.down {
		status = corev1.ConditionUnknown
	}
	m.mu.Unlock()
	m.post(ctx, status)
}

// start starts an agent for the machine, instead of one that has ended.
func (m *machine) start(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone || ctx.Err() != nil {
		return
	}
	a, err := startAgent(ctx, m, m.name, m.run.worker.log)
	if err != nil {
		m.run.fail(err)
		return
	}
	m.agent = a
}

// kill ends the agent, if one runs.
func (m *machine) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.agent != nil {
		m.agent.kill()
		m.agent = nil
	}
}

// wake has the agent look at the time again.
func (m *machine) wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.agent != nil {
		m.agent.reconciler.Wake.Trigger()
	}
}

// report has the engine report to an agent.
func (m *machine) report(a *agent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a.reconciler.Reports.Put(report(m.running, m.needed))
}

// need stages an update.
func (m *machine) need() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.needed || m.gone || m.down {
		return
	}
	m.needed = true
	m.run.note(m.number, judge.Staged, m.boot, 0)
	if m.agent != nil {
		m.agent.reconciler.Reports.Put(report(m.running, true))
	}
}

// goDown is logind's answer to an agent: the power goes soon. What the agent has written until it asked counts.
func (m *machine) goDown(a *agent) error {
	asked := m.run.present()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.agent != a || m.run.ctx.Err() != nil:
		return errors.New("the agent is dead")
	case m.down:
		return nil
	}
	m.down = true
	m.run.agents.Go(func() { m.powerCycle(m.run.ctx, asked) })
	return nil
}

func (m *machine) powerCycle(ctx context.Context, asked int64) {
	pause(ctx, acceptance)
	m.mu.Lock()
	if m.gone {
		m.mu.Unlock()
		return
	}
	m.run.note(m.number, judge.Rebooted, m.boot, asked)
	if m.agent != nil {
		m.agent.kill()
		m.agent = nil
	}
	m.mu.Unlock()
	m.post(ctx, corev1.ConditionUnknown)
	pause(ctx, downtime)
	m.mu.Lock()
	m.boot, m.needed, m.down = string(uuid.NewUUID()), false, false
	m.running++
	err := m.writeBoot()
	m.mu.Unlock()
	if err != nil {
		m.run.fail(err)
	}
	m.post(ctx, corev1.ConditionTrue)
	m.run.back.Add(1)
	m.start(ctx)
}

// post writes what a kubelet reports: Ready or not, and in which boot.
func (m *machine) post(ctx context.Context, status corev1.ConditionStatus) {
	insist(ctx, func() error {
		m.mu.Lock()
		name, body := m.name, map[string]any{"status": map[string]any{
			"conditions": []corev1.NodeCondition{m.ready(status)}, "nodeInfo": map[string]any{"bootID": m.boot},
		}}
		m.mu.Unlock()
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		_, err = m.run.worker.api.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, text, metav1.PatchOptions{}, "status")
		if apierrors.IsNotFound(err) {
			return nil // an administrator has deleted it
		}
		return err
	})
}

func (m *machine) ready(status corev1.ConditionStatus) corev1.NodeCondition {
	now := metav1.NewTime(m.clock.Now())
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: status, Reason: "Chaos", LastHeartbeatTime: now, LastTransitionTime: now}
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
