package simulation

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
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

const (
	kubelet = "kubelet"
	// graceOfNodes is how long a kubelet may be silent before the node controller reports that its node is Unknown.
	graceOfNodes = 40 * time.Second
	engineName   = "update-engine"
)

// machine is a host: it has power or not, a boot ID, what runs and what is staged. It is the truth about reboots.
type machine struct {
	world  *World
	name   string
	random *process.Random
	folder string
	labels map[string]string
	// wrong is by how many nanoseconds the clock is.
	wrong atomic.Int64

	mu              sync.Mutex
	up              bool
	boots           int
	running, staged int
	// scrapped: there is no such machine any more.
	scrapped bool
	// leaving: logind has accepted a reboot of this boot.
	leaving bool
	agent   *process.Process
	reports interface{ Put(engine.Report) }
}

func newMachine(w *World, script NodeScript) *machine {
	return &machine{
		world: w, name: script.Name, random: w.random("host", script.Name), folder: filepath.Join(w.folder, script.Name), running: 1, staged: 1, labels: script.Labels,
	}
}

func (m *machine) bootIDFile() string { return m.folder }

// bootID is that of the n-th boot.
func (m *machine) bootID() string { return fmt.Sprintf("%s-boot-%d", m.name, m.boots) }

// boot lets the machine come up, with what was staged; kubelet and agent follow.
func (m *machine) boot(ctx context.Context) error {
	m.mu.Lock()
	if m.up || m.scrapped {
		m.mu.Unlock()
		return nil
	}
	m.up, m.leaving, m.running = true, false, m.staged
	m.boots++
	id := m.bootID()
	err := os.WriteFile(m.bootIDFile(), []byte(id+"\n"), 0o600)
	m.mu.Unlock()
	if err != nil {
		return err
	}
	m.world.Go(func() {
		if process.Wait(ctx, m.random.Between(0, 10*time.Second)) {
			m.join(id, m.random.Chance(0.3))
		}
		if process.Wait(ctx, m.random.Between(0, 20*time.Second)) && m.is(id) {
			m.join(id, false)
			m.startAgent()
		}
	})
	return nil
}

func (m *machine) is(bootID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.up && m.bootID() == bootID
}

// join is what a kubelet does when it has begun. It registers its Node where there is none.
func (m *machine) join(bootID string, starting bool) {
	status := corev1.ConditionTrue
	if starting {
		status = corev1.ConditionFalse
	}
	if m.is(bootID) {
		m.world.register(m)
		m.reportReady(bootID, status)
	}
}

func (m *machine) reportReady(bootID string, ready corev1.ConditionStatus) {
	m.world.store.Change(apiserver.Key{Kind: apiserver.Nodes, Name: m.name}, kubelet, func(object client.Object) {
		node, _ := object.(*corev1.Node)
		node.Status.NodeInfo.BootID = bootID
		setReady(node, ready, metav1.NewTime(m.clock().Now()).Rfc3339Copy())
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

// goDown ends the boot, and begins the next one after a while. False: it has ended already.
func (m *machine) goDown(ctx context.Context, bootID string, event judge.MachineEvent, down time.Duration) bool {
	m.mu.Lock()
	if !m.up || m.bootID() != bootID {
		m.mu.Unlock()
		return false
	}
	agent := m.halt()
	m.mu.Unlock()
	m.world.did(m.name, event, bootID)
	kill(agent)
	m.world.Go(func() {
		if down > graceOfNodes && process.Wait(ctx, graceOfNodes) {
			if m.currentBoot() == bootID { // or another machine has come under its name
				m.reportReady(bootID, corev1.ConditionUnknown)
			}
			down -= graceOfNodes
		}
		if !process.Wait(ctx, down) {
			return
		}
		if err := m.boot(ctx); err != nil {
			m.world.fail(err)
		}
	})
	return true
}

// halt ends the boot, and returns the agent that ends with it. The lock is held.
func (m *machine) halt() (agent *process.Process) {
	m.up, agent = false, m.agent
	m.agent, m.reports = nil, nil
	return agent
}

// scrap takes the machine away, with what was staged on it.
func (m *machine) scrap() {
	m.mu.Lock()
	m.scrapped, m.staged = true, m.staged+1
	agent := m.halt()
	m.mu.Unlock()
	m.world.did(m.name, judge.Scrapped, "")
	kill(agent)
}

// provide brings another machine of the same name, with the newest version.
func (m *machine) provide(ctx context.Context) error {
	m.mu.Lock()
	m.scrapped = false
	m.mu.Unlock()
	return m.boot(ctx)
}

func (m *machine) currentBoot() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bootID()
}

// hostClock is true but for what it is set wrong by. What runs for a while runs as long by any clock.
type hostClock struct {
	clock.RealClock
	wrong *atomic.Int64
}

// Now implements clock.PassiveClock.
func (c hostClock) Now() time.Time { return c.RealClock.Now().Add(time.Duration(c.wrong.Load())) }

// Since implements clock.PassiveClock.
func (c hostClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (m *machine) clock() clock.WithTicker { return hostClock{wrong: &m.wrong} }

// losePower is a reboot that nobody has asked for. False: the machine is down.
func (m *machine) losePower(ctx context.Context, down time.Duration) bool {
	return m.goDown(ctx, m.currentBoot(), judge.Lost, down)
}

// stage is an update that is installed; the engine notifies the agent. False: the machine is down, or going down.
func (m *machine) stage() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.up || m.leaving {
		return false
	}
	m.staged++
	m.world.did(m.name, judge.Staged, m.bootID())
	if m.reports != nil {
		m.reports.Put(m.report())
	}
	return true
}

func (m *machine) report() engine.Report {
	r := engine.Report{Engine: engineName, State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: "update-engine is idle."}
	if m.staged != m.running {
		r.State, r.Reason = engine.Needed, v1alpha1.ReasonUpdateStaged
		r.Version, r.Running = fmt.Sprintf("%d.0", m.staged), fmt.Sprintf("%d.0", m.running)
		r.Message = "update-engine has installed version " + r.Version + "."
	}
	return r
}

// listen lets an agent receive what the engine reports, from now on.
func (m *machine) listen(agent *process.Process, reports interface{ Put(engine.Report) }) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if agent.Alive() && m.agent == agent {
		m.reports = reports
		reports.Put(m.report())
	}
}

// logind is what an agent asks for a reboot.
type logind struct {
	*machine
	agent  *process.Process
	random *process.Random
}

// BlockInhibitors implements reboot.Logind.
func (l logind) BlockInhibitors(context.Context) ([]host.Inhibitor, error) { return nil, nil }

// Reboot implements reboot.Logind. It may be refused, and the host takes its time.
func (l logind) Reboot(context.Context, v1alpha1.InhibitorPolicy) error {
	m := l.machine
	if !l.agent.Pass() {
		return process.ErrDead
	}
	if !m.world.conditions.isCalm() && l.random.Chance(0.1) {
		return errors.New("the operation was refused")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.up || m.agent != l.agent {
		return process.ErrDead
	}
	if m.leaving {
		return nil
	}
	m.leaving = true
	id, shutdown, down := m.bootID(), m.random.Between(time.Second, time.Minute), m.random.Between(5*time.Second, m.world.script.Boot)
	m.world.Go(func() {
		if process.Wait(m.world.ctx, shutdown) {
			m.goDown(m.world.ctx, id, judge.Rebooted, down)
		}
	})
	return nil
}
