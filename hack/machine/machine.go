// Package machine plays a host in memory for a harness: its power, boots, staged and running
// versions, and clock. It is the ground truth about reboots. The harness decides how long
// everything takes and what the kubelet reports.
package machine

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

// Engine is the name of the update engine on all machines.
const Engine = "update-engine"

// Machine is one host. Its methods may be called from any goroutine.
type Machine struct {
	Clock Clock

	name   string
	file   string
	record func(event judge.MachineEvent, boot string)

	mu sync.Mutex
	up bool
	// leaving is true once logind has accepted a reboot of this boot.
	leaving bool
	// scrapped is true once the machine was removed.
	scrapped        bool
	boots           int
	boot            string // the ID of the current or the last boot
	running, staged int
	reports         Reports
	// keepsBootID and needReturns are peculiarities of the machine.
	keepsBootID, needReturns bool
}

// Reports delivers the engine's reports to an agent.
type Reports interface{ Put(report engine.Report) }

// New returns a machine that is powered off. The file has its boot ID. record is called with every
// event of the machine.
func New(name, bootIDFile string, record func(event judge.MachineEvent, boot string)) *Machine {
	return &Machine{name: name, file: bootIDFile, record: record, boot: name + "-boot-0", running: 1, staged: 1}
}

// Boot boots the machine with the staged version and returns the ID of the boot. It returns an
// empty text if the machine is up or was scrapped.
func (m *Machine) Boot() (id string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.up || m.scrapped {
		return "", nil
	}
	m.up, m.leaving, m.running = true, false, m.staged
	m.boots++
	if !m.keepsBootID {
		m.boot = fmt.Sprintf("%s-boot-%d", m.name, m.boots)
	}
	return m.boot, m.writeBootID()
}

func (m *Machine) writeBootID() error {
	if err := os.WriteFile(m.file, []byte(m.boot+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing a boot ID: %w", err)
	}
	return nil
}

// BootIDFile returns the path of the file that stands for /proc/sys/kernel/random/boot_id.
func (m *Machine) BootIDFile() string { return m.file }

// UptimeFile returns the path of the file that stands for /proc/uptime.
func (m *Machine) UptimeFile() string { return m.file + ".uptime" }

// ShowsUptime reports whether an agent can read the uptime, which it can after SetUptime.
func (m *Machine) ShowsUptime() bool {
	_, err := os.Stat(m.UptimeFile())
	return err == nil
}

// SetUptime writes the uptime that an agent reads.
func (m *Machine) SetUptime(up time.Duration) error {
	if err := os.WriteFile(m.UptimeFile(), fmt.Appendf(nil, "%.0f 0\n", up.Seconds()), 0o600); err != nil {
		return fmt.Errorf("writing an uptime: %w", err)
	}
	return nil
}

// Boots returns how often the machine has booted.
func (m *Machine) Boots() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boots
}

// Restore starts a machine without power from a snapshot of the given boot, in which the last update
// was staged.
func (m *Machine) Restore(boot string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.up || m.scrapped {
		return nil
	}
	m.up, m.leaving, m.boot, m.running = true, false, boot, m.staged-1
	m.record(judge.Staged, m.boot)
	return m.writeBootID()
}

// KeepBootID makes later boots have the ID of the current one, as if the machine was a container, or
// ends that.
func (m *Machine) KeepBootID(keep bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keepsBootID = keep
}

// KeepsBootID reports whether the next boot has the ID of the current one.
func (m *Machine) KeepsBootID() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keepsBootID
}

// IsOdd reports whether the machine keeps its boot ID or has a need that returns.
func (m *Machine) IsOdd() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keepsBootID || m.needReturns
}

// LetNeedReturn makes Return report needs, which have no version.
func (m *Machine) LetNeedReturn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.needReturns = true
}

// Return reports again the need that the last boot should have ended, if that need returns.
func (m *Machine) Return() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.needReturns || !m.up || m.leaving || m.staged != m.running {
		return
	}
	m.staged++
	m.record(judge.Returned, m.boot)
	m.notify()
}

// Repair removes what makes a need return, and the need with it.
func (m *Machine) Repair() {
	m.mu.Lock()
	defer m.mu.Unlock()
	returns := m.needReturns
	if m.needReturns = false; !returns || !m.up || m.leaving {
		return // the next boot ends the need
	}
	m.running = m.staged
	m.record(judge.Repaired, m.boot)
	m.notify()
}

// BootID returns the ID of the current or the last boot.
func (m *Machine) BootID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boot
}

// IsIn reports whether the machine is up in the given boot.
func (m *Machine) IsIn(boot string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.up && m.boot == boot
}

// IsUp reports whether the machine is up. It may be going down.
func (m *Machine) IsUp() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.up
}

// IsScrapped reports whether the machine was removed.
func (m *Machine) IsScrapped() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.scrapped
}

// Unfinished returns what the machine waits for. It is empty if the machine runs the staged
// version, or was scrapped.
func (m *Machine) Unfinished() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.scrapped || m.up && !m.leaving && m.staged == m.running {
		return ""
	}
	return fmt.Sprintf("runs %d.0, %d.0 is staged, up is %t, going down is %t", m.running, m.staged, m.up, m.leaving)
}

// Stage installs an update and the engine notifies the agent. It returns false if the machine is
// down or going down.
func (m *Machine) Stage() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.up || m.leaving {
		return false
	}
	m.staged++
	m.record(judge.Staged, m.boot)
	m.notify()
	return true
}

func (m *Machine) notify() {
	if m.reports != nil {
		m.reports.Put(m.report())
	}
}

// Listen delivers the engine's reports to an agent until the boot ends or another agent listens.
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
		r.Message = Engine + " asks for a reboot."
	}
	if r.State == engine.Needed && !m.needReturns {
		r.Version, r.Running = fmt.Sprintf("%d.0", m.staged), fmt.Sprintf("%d.0", m.running)
		r.Message = Engine + " has installed version " + r.Version + "."
	}
	return r
}

// Leave plays logind accepting a reboot of the given boot. It returns false if the machine is down
// or already going down.
func (m *Machine) Leave() (boot string, accepted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.up || m.leaving {
		return "", false
	}
	m.leaving = true
	return m.boot, true
}

// IsLeaving reports whether logind has accepted a reboot of this boot, or the machine is down.
func (m *Machine) IsLeaving() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leaving || !m.up
}

// Halt ends a boot and records the event. It returns false if the boot has already ended: a
// shutdown that logind began in an earlier boot of the same ID ends nothing.
func (m *Machine) Halt(boot string, event judge.MachineEvent) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.up || m.boot != boot || event == judge.Rebooted && !m.leaving {
		return false
	}
	m.up, m.reports = false, nil
	m.record(event, boot)
	return true
}

// Scrap removes the machine and its staged version.
func (m *Machine) Scrap() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.scrapped {
		return
	}
	m.up, m.scrapped, m.reports, m.needReturns = false, true, nil, false
	m.staged++
	m.record(judge.Scrapped, "")
}

// Provide adds another machine of the same name with the newest version. It is powered off.
func (m *Machine) Provide() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scrapped, m.keepsBootID, m.needReturns = false, false, false
}

// Alone is a reboot.HostCoordinators on a host that nothing else reboots.
type Alone struct{}

// Other implements reboot.HostCoordinators.
func (Alone) Other(context.Context) (*host.Coordinator, error) { return nil, nil }
