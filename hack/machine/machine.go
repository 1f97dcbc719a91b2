// Package machine plays a host: its power, boots, boot ID, uptime, clock, staged and running
// versions, and what its kubelet reports. It is the ground truth about reboots, and the harness
// decides how long everything takes.
//
// Use a Machine for many hosts in one process and in virtual time, as the simulation and chaos do;
// its Logind is the agent's interface. Use a Host for the shipped agent, which needs a root folder
// and a real D-Bus, as the agent's specs, the fleet and the demo do. Only package rack shows real
// kernels' cgroups, systemd and kubelets. Package agents plays thousands of agents without hosts.
package machine

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

// Engine is the name of the update engine on all machines.
const Engine = "update-engine"

// Machine is one host. Its methods may be called from any goroutine.
type Machine struct {
	// Name is the name of the host, and of its first Node.
	Name  string
	Clock Clock

	file   string
	record func(event judge.MachineEvent, boot string)

	mu sync.Mutex
	up bool
	// leaving is true once logind has accepted a reboot of this boot.
	leaving bool
	// scrapped is true once the machine was removed.
	scrapped bool
	// inhibited is true while a block inhibitor is held.
	inhibited       bool
	boots           int
	boot            string    // the ID of the current or the last boot
	since           time.Time // the beginning of its uptime
	ends            []func()  // what to call at its end
	running, staged int
	reports         Reports
	// keepsBootID and needReturns are peculiarities of the machine.
	keepsBootID, needReturns bool
}

// Reports delivers the engine's reports to an agent.
type Reports interface{ Put(report engine.Report) }

// New returns a machine that is powered off. The file has its boot ID. record is called with every
// event of the machine, unless it is nil.
func New(name, bootIDFile string, record func(event judge.MachineEvent, boot string)) *Machine {
	if record == nil {
		record = func(judge.MachineEvent, string) {}
	}
	return &Machine{Name: name, file: bootIDFile, record: record, boot: name + "-boot-0", running: 1, staged: 1}
}

func (m *Machine) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// read returns a part of the state of a machine under its lock.
func read[T any](m *Machine, value func() T) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return value()
}

// Boot boots the machine with the staged version and returns the ID of the boot. It returns an
// empty text if the machine is up or was scrapped.
func (m *Machine) Boot() (id string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.up || m.scrapped {
		return "", nil
	}
	m.running = m.staged
	m.boots++
	m.since = time.Now().Add(time.Duration(m.boots%60)*time.Second - settled)
	if !m.keepsBootID {
		m.boot = fmt.Sprintf("%s-boot-%d", m.Name, m.boots)
	}
	return m.boot, m.begin()
}

const (
	// LongUp is an uptime of a host that is not rebooted for the first time.
	LongUp = 10 * time.Hour
	// settled is the uptime right after a boot, less a second for each boot. Agents do not wait for
	// hosts that have been up for that long.
	settled = 3 * time.Minute
)

// begin starts the present boot. The caller holds the lock.
func (m *Machine) begin() error {
	m.up, m.leaving = true, false
	err := write(m.file, m.boot+"\n")
	if _, missing := os.Stat(m.UptimeFile()); missing == nil {
		err = errors.Join(err, m.showUptime())
	}
	return err
}

// write replaces a file, so that readers find it complete.
func write(path, text string) error {
	err := os.WriteFile(path+".next", []byte(text), 0o600)
	if err == nil {
		err = os.Rename(path+".next", path)
	}
	if err != nil {
		return fmt.Errorf("writing a file of a host: %w", err)
	}
	return nil
}

// BootIDFile returns the path of the file that stands for /proc/sys/kernel/random/boot_id.
func (m *Machine) BootIDFile() string { return m.file }

// UptimeFile returns the path of the file that stands for /proc/uptime. It exists after SetUptime.
func (m *Machine) UptimeFile() string { return m.file + ".uptime" }

// SetUptime sets the uptime of this boot, and lets agents read it in this boot and later ones.
func (m *Machine) SetUptime(up time.Duration) error {
	m.set(func() { m.since = time.Now().Add(-up) })
	return m.Tick()
}

// Tick lets agents read the uptime as it is now.
func (m *Machine) Tick() error { return read(m, m.showUptime) }

func (m *Machine) showUptime() error {
	return write(m.UptimeFile(), fmt.Sprintf("%.2f 0.00\n", time.Since(m.since).Seconds()))
}

// Boots returns how often the machine has booted.
func (m *Machine) Boots() int { return read(m, func() int { return m.boots }) }

// Restore restores a machine that is up to a snapshot of the boot before the last reboot that its
// Node shows, in which the last update was staged. Its uptime goes on. It returns the ID of that
// boot, or an empty text if the Node shows no such reboot.
func (m *Machine) Restore(node *corev1.Node) (id string, err error) {
	progress, err := protocol.ParseProgress(node.Annotations)
	now := m.BootID()
	if err != nil || progress == nil || progress.Phase != protocol.PhaseRebooting || progress.BootID == now {
		return "", err
	}
	m.Repair()
	if !m.Halt(now, judge.Lost) {
		return "", nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boot, m.running = progress.BootID, m.staged-1
	m.record(judge.Staged, m.boot)
	return m.boot, m.begin()
}

// KeepBootID makes later boots have the ID of the current one, as if the machine was a container, or
// ends that.
func (m *Machine) KeepBootID(keep bool) { m.set(func() { m.keepsBootID = keep }) }

// KeepsBootID reports whether the next boot has the ID of the current one.
func (m *Machine) KeepsBootID() bool { return read(m, func() bool { return m.keepsBootID }) }

// IsOdd reports whether the machine keeps its boot ID or has a need that returns.
func (m *Machine) IsOdd() bool { return read(m, func() bool { return m.keepsBootID || m.needReturns }) }

// LetNeedReturn makes Return report needs, which have no version.
func (m *Machine) LetNeedReturn() { m.set(func() { m.needReturns = true }) }

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
func (m *Machine) BootID() string { return read(m, func() string { return m.boot }) }

// IsIn reports whether the machine is up in the given boot.
func (m *Machine) IsIn(boot string) bool {
	return read(m, func() bool { return m.up && m.boot == boot })
}

// IsUp reports whether the machine is up. It may be going down.
func (m *Machine) IsUp() bool { return read(m, func() bool { return m.up }) }

// IsScrapped reports whether the machine was removed.
func (m *Machine) IsScrapped() bool { return read(m, func() bool { return m.scrapped }) }

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
func (m *Machine) IsLeaving() bool { return read(m, func() bool { return m.leaving || !m.up }) }

// AtEnd calls a function at the end of a boot. It calls it at once and returns false if that boot
// has ended.
func (m *Machine) AtEnd(boot string, end func()) bool {
	m.mu.Lock()
	goesOn := m.up && m.boot == boot
	if goesOn {
		m.ends = append(m.ends, end)
	}
	m.mu.Unlock()
	if !goesOn {
		end()
	}
	return goesOn
}

// cutPower ends the present boot. It unlocks the machine, which the caller has locked.
func (m *Machine) cutPower() {
	ends := m.ends
	m.up, m.reports, m.ends = false, nil, nil
	m.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

// Halt ends a boot and records the event. It returns false if the boot has already ended: a
// shutdown that logind began in an earlier boot of the same ID ends nothing.
func (m *Machine) Halt(boot string, event judge.MachineEvent) bool {
	m.mu.Lock()
	if !m.up || m.boot != boot || event == judge.Rebooted && !m.leaving {
		m.mu.Unlock()
		return false
	}
	m.record(event, boot)
	m.cutPower()
	return true
}

// Scrap removes the machine and its staged version.
func (m *Machine) Scrap() {
	m.mu.Lock()
	if m.scrapped {
		m.mu.Unlock()
		return
	}
	m.scrapped, m.needReturns = true, false
	m.staged++
	m.record(judge.Scrapped, "")
	m.cutPower()
}

// Provide adds another machine of the same name with the newest version. It is powered off.
func (m *Machine) Provide() {
	m.set(func() { m.scrapped, m.keepsBootID, m.needReturns = false, false, false })
}
