package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

// Host is one machine: what its programs see of it, and its power switch.
type Host struct {
	// Name is the node's.
	Name string
	// Root represents the machine's root file system.
	Root string
	// Bus is its system bus.
	Bus *hosttest.Bus
	// Engine is what its updates come by.
	Engine Engine

	machine *embedded.Machine
	updates updates
	logind  *hosttest.Logind
	clock   clock.Clock

	mu      sync.Mutex
	powered chan struct{} // closed while the power is on
	cuts    int
	running []*process.Process
}

// newHost puts a machine under an existing simulated node. Its files are in a folder of its own in dir.
func newHost(ctx context.Context, cluster *embedded.Cluster, dir, name string, engine Engine) (*Host, error) {
	h := &Host{Name: name, Root: filepath.Join(dir, name), Engine: engine, clock: clock.RealClock{}, powered: make(chan struct{})}
	close(h.powered)
	if err := os.MkdirAll(filepath.Join(h.Root, "etc"), 0o700); err != nil {
		return nil, fmt.Errorf("making the root of %q: %w", name, err)
	}
	if err := h.mount(engine.release); err != nil {
		return nil, err
	}
	var err error
	if h.machine, err = embedded.NewMachine(ctx, cluster, name, filepath.Join(h.Root, "boot_id")); err != nil {
		return nil, err
	}
	return h, h.startBus()
}

// mount is the file system at the start of a boot: the version of the operating system that is booted, and an empty /run.
func (h *Host) mount(release string) error {
	err := errors.Join(
		os.WriteFile(filepath.Join(h.Root, "etc", "os-release"), []byte(release), 0o600),
		os.RemoveAll(h.run()),
		os.Mkdir(h.run(), 0o700),
	)
	if err != nil {
		return fmt.Errorf("mounting the file systems of %q: %w", h.Name, err)
	}
	return nil
}

// run is the machine's /run, which lies in memory.
func (h *Host) run() string { return filepath.Join(h.Root, "run") }

func (h *Host) startBus() (err error) {
	if h.Bus, err = hosttest.Start(h.Root); err != nil {
		return err
	}
	if h.updates, err = h.Engine.install(h); err != nil {
		return err
	}
	if h.logind, err = hosttest.StartLogind(h.Bus); err != nil {
		return err
	}
	h.logind.SetSystemd(h.Engine.systemd)
	return nil
}

// Stage brings the machine an update that waits for a reboot.
func (h *Host) Stage() error {
	if err := h.updates.stage(); err != nil {
		return fmt.Errorf("on %s: %w", h.Name, err)
	}
	return nil
}

// UpdateEngine is the machine's update_engine. Nil: its updates come by something else.
func (h *Host) UpdateEngine() *hosttest.UpdateEngine {
	u, ok := h.updates.(*flatcarUpdates)
	if !ok {
		return nil
	}
	return u.engine
}

// onReboot calls f for each reboot that logind accepts.
func (h *Host) onReboot(f func()) { h.logind.OnReboot(f) }

// reboot cuts the power, and comes back as long after.
func (h *Host) reboot(ctx context.Context, down time.Duration) error {
	up := h.clock.After(down)
	h.cutPower()
	if err := h.machine.Down(ctx); err != nil {
		return err
	}
	select {
	case <-up:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := h.boot(); err != nil {
		return err
	}
	if err := h.machine.Up(ctx); err != nil {
		return err
	}
	h.restorePower()
	return nil
}

// boot starts what a machine starts before any pod: a new bus, an update engine that has nothing to install, logind.
func (h *Host) boot() error {
	if err := errors.Join(h.mount(h.Engine.upgraded), h.Bus.Restart()); err != nil {
		return err
	}
	return errors.Join(h.updates.boot(), h.logind.Start())
}

func (h *Host) cutPower() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.powered = make(chan struct{})
	h.cuts++
	for _, p := range h.running {
		p.Kill()
	}
	h.running = nil
}

func (h *Host) restorePower() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.powered)
}

// start starts a program once the power is on, and reports how often the power had been cut by then.
func (h *Host) start(ctx context.Context, group *process.Group, program process.Program) (*process.Process, int, error) {
	for {
		h.mu.Lock()
		powered := h.powered
		select {
		case <-powered:
			defer h.mu.Unlock()
			p, err := group.Start(program)
			if err == nil {
				h.running = append(h.running, p)
			}
			return p, h.cuts, err
		default:
			h.mu.Unlock()
		}
		select {
		case <-powered:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// cutSince reports whether the power has been cut more often than so many times.
func (h *Host) cutSince(cuts int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cuts > cuts
}
