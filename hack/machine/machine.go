// Package machine is a host that a harness plays in memory: its power, its boots, what runs and what is staged, and its clock. It is
// the truth about reboots. How long everything takes, and what the kubelet reports, is the harness's.
package machine

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

// Engine is the name of the update engine of all machines.
const Engine = "update-engine"

// Machine is one host. Its methods may be called from any goroutine.
type Machine struct {
	Clock Clock

	name   string
	file   string
	record func(event judge.MachineEvent, boot string)

	mu sync.Mutex
	up bool
	// leaving: logind has accepted a reboot of this boot.
	leaving bool
	// scrapped: there is no such machine any more.
	scrapped        bool
	boots           int
	running, staged int
	reports         Reports
}

// Reports is where an agent receives what the engine reports.
type Reports interface{ Put(report engine.Report) }

// New makes a machine that has no power yet. The file has its boot ID; record is called with all it does.
func New(name, bootIDFile string, record func(event judge.MachineEvent, boot string)) *Machine {
	return &Machine{name: name, file: bootIDFile, record: record, running: 1, staged: 1}
}

// Boot lets the machine come up, with what was staged, and returns the ID of the boot. Empty: it is up, or there is none any more.
func (m *Machine) Boot() (id string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.up || m.scrapped {
		return "", nil
	}
	m.up, m.leaving, m.running = true, false, m.staged
	m.boots++
	if err := os.WriteFile(m.file, []byte(m.bootID()+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("writing a boot ID: %w", err)
	}
	return m.bootID(), nil
}

func (m *Machine) bootID() string { return fmt.Sprintf("%s-boot-%d", m.name, m.boots) }

// BootID is that of the boot that the machine is in, or was in last.
func (m *Machine) BootID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bootID()
}

// IsIn reports whether the machine is up, in a boot.
func (m *Machine) IsIn(boot string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.up && m.bootID() == boot
}

// IsUp reports whether the machine is up; it may be going down.
func (m *Machine) IsUp() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.up
}

// IsScrapped reports whether there is no such machine any more.
func (m *Machine) IsScrapped() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.scrapped
}

// Unfinished is what the machine waits for. Empty: it is up and runs what is staged, or there is none any more.
func (m *Machine) Unfinished() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.scrapped || m.up && !m.leaving && m.staged == m.running {
		return ""
	}
	return fmt.Sprintf("runs %d.0, %d.0 is staged, up is %t, going down is %t", m.running, m.staged, m.up, m.leaving)
}

// Stage installs an update; the engine notifies the agent. False: the machine is down, or going down.
func (m *Machine) Stage() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.up || m.leaving {
		return false
	}
	m.staged++
	m.record(judge.Staged, m.bootID())
	if m.reports != nil {
		m.reports.Put(m.report())
	}
	return true
}

// Listen lets an agent receive what the engine reports, until the boot ends or another one does.
func (m *Machine) Listen(reports Reports) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.up {
		m.reports = reports
		reports.Put(m.report())
	}
}

func (m *Machine) report() engine.Report {
	r := engine.Report{Engine: Engine, State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: Engine + " is idle."}
	if m.staged != m.running {
		r.State, r.Reason = engine.Needed, v1alpha1.ReasonUpdateStaged
		r.Version, r.Running = fmt.Sprintf("%d.0", m.staged), fmt.Sprintf("%d.0", m.running)
		r.Message = Engine + " has installed version " + r.Version + "."
	}
	return r
}

// Leave is logind that accepts a reboot: of which boot. False: the machine is down, or going down already.
func (m *Machine) Leave() (boot string, accepted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.up || m.leaving {
		return "", false
	}
	m.leaving = true
	return m.bootID(), true
}

// IsLeaving reports whether logind has accepted a reboot of this boot, or the machine is down.
func (m *Machine) IsLeaving() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leaving || !m.up
}

// Halt ends a boot, by what is recorded. False: it has ended already.
func (m *Machine) Halt(boot string, event judge.MachineEvent) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.up || m.bootID() != boot {
		return false
	}
	m.up, m.reports = false, nil
	m.record(event, boot)
	return true
}

// Scrap takes the machine away, with what was staged on it.
func (m *Machine) Scrap() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.scrapped {
		return
	}
	m.up, m.scrapped, m.reports = false, true, nil
	m.staged++
	m.record(judge.Scrapped, "")
}

// Provide brings another machine of the same name, with the newest version. It has no power yet.
func (m *Machine) Provide() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scrapped = false
}

// Alone is reboot.HostCoordinators where nothing else reboots the host.
type Alone struct{}

// Other implements reboot.HostCoordinators.
func (Alone) Other(context.Context) (*host.Coordinator, error) { return nil, nil }

// Clock is the real one, but for what it is set wrong by. What runs for a while runs as long by any clock.
type Clock struct {
	clock.RealClock

	wrong   atomic.Int64
	stopped atomic.Pointer[time.Time]
}

// Stop stops the clock: from then on it shows another time only after Set and Jump.
func (c *Clock) Stop() { c.stopped.Store(new(c.RealClock.Now())) }

// Set sets the clock wrong by so much.
func (c *Clock) Set(by time.Duration) { c.wrong.Store(int64(by)) }

// Jump puts the clock on, or back.
func (c *Clock) Jump(by time.Duration) { c.wrong.Add(int64(by)) }

// Now implements clock.PassiveClock.
func (c *Clock) Now() time.Time {
	now := c.stopped.Load()
	if now == nil {
		now = new(c.RealClock.Now())
	}
	return now.Add(time.Duration(c.wrong.Load()))
}

// Since implements clock.PassiveClock.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Gate is what a program passes before each thing it does. It can be held there, as SIGSTOP does.
type Gate struct {
	mu   sync.Mutex
	held chan struct{} // closed when it is let go; nil: it is not held
}

// Hold stops the program where it passes next.
func (g *Gate) Hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held == nil {
		g.held = make(chan struct{})
	}
}

// Release lets it go on.
func (g *Gate) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held != nil {
		close(g.held)
		g.held = nil
	}
}

// Pass waits while the program is held, and reports whether its life lasted.
func (g *Gate) Pass(life context.Context) bool {
	for life.Err() == nil {
		g.mu.Lock()
		held := g.held
		g.mu.Unlock()
		if held == nil {
			return true
		}
		select {
		case <-held:
		case <-life.Done():
		}
	}
	return false
}
