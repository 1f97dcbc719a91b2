package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/machine"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// Host is one machine, its update engine and its kubelet.
type Host struct {
	machine.Host
	// Engine is its update engine.
	Engine Engine
	// UpdateEngine is the machine's update_engine, or nil if it has another engine.
	UpdateEngine *hosttest.UpdateEngine
	// Zincati is the machine's Zincati, or nil.
	Zincati *Zincati

	// kubelet is a client that is the node to the API server, so that the audit log shows its
	// writes.
	kubelet client.Client
	updates updates

	mu sync.Mutex
	// ready is closed once the kubelet has reported in the present boot.
	ready chan struct{}
}

// maxFolder is the longest name of a machine's folder. The path of its bus may have 107 bytes.
const maxFolder = 24

// newHost adds a machine, with its own folder, to a simulated node.
func newHost(ctx context.Context, cluster *embedded.Cluster, name string, engine Engine) (*Host, error) {
	root := filepath.Join(cluster.Dir, name[max(0, len(name)-maxFolder):])
	h := &Host{Host: machine.Host{Machine: machine.New(name, filepath.Join(root, "boot_id"), nil), Root: root}, Engine: engine, ready: make(chan struct{})}
	if err := os.MkdirAll(filepath.Join(h.Root, "etc"), 0o700); err != nil {
		return nil, fmt.Errorf("making the root of %q: %w", name, err)
	}
	if err := h.mount(engine.release); err != nil {
		return nil, err
	}
	config := cluster.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + name, Groups: []string{"system:nodes"}}
	var err error
	if h.kubelet, err = testenv.NewClient(config); err != nil {
		return nil, fmt.Errorf("building the client of node %q: %w", name, err)
	}
	if err := h.startBus(); err != nil {
		return nil, err
	}
	return h, h.comeUp(ctx)
}

// mount sets up the file system at the start of a boot, with the booted version of the operating
// system and an empty /run.
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

// run returns the machine's /run.
func (h *Host) run() string { return filepath.Join(h.Root, "run") }

func (h *Host) startBus() (err error) {
	if h.Bus, err = hosttest.Start(h.Root); err != nil {
		return err
	}
	if h.updates, err = h.Engine.install(h); err != nil {
		return err
	}
	if h.Logind, err = hosttest.StartLogind(h.Bus); err != nil {
		return err
	}
	h.Logind.SetSystemd(h.Engine.systemd)
	return nil
}

// Stage stages an update on the machine.
func (h *Host) Stage() error {
	if err := h.updates.stage(); err != nil {
		return fmt.Errorf("on %s: %w", h.Name, err)
	}
	return nil
}

// reboot cuts the power, and boots again after the given time.
func (h *Host) reboot(ctx context.Context, down time.Duration) error {
	boot, accepted := h.Leave()
	if !accepted {
		return nil
	}
	h.mu.Lock()
	h.ready = make(chan struct{})
	h.mu.Unlock()
	up := time.After(down)
	h.Halt(boot, judge.Rebooted)
	if err := h.Post(ctx, h.kubelet, h.Name); err != nil {
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
	return h.comeUp(ctx)
}

// boot starts everything that a machine starts before any pod: a new bus, an update engine without
// an update, and logind.
func (h *Host) boot() error {
	if err := errors.Join(h.mount(h.Engine.upgraded), h.Bus.Restart()); err != nil {
		return err
	}
	return errors.Join(h.updates.boot(), h.Logind.Start())
}

// comeUp begins a boot, in which pods may run once the kubelet has reported.
func (h *Host) comeUp(ctx context.Context) error {
	if _, err := h.Machine.Boot(); err != nil {
		return err
	}
	if err := h.Post(ctx, h.kubelet, h.Name); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.ready)
	return nil
}

// start starts a program once the kubelet has reported, and returns the boot that ends it.
func (h *Host) start(ctx context.Context, group *process.Group, program process.Program) (p *process.Process, boot string, err error) {
	for {
		h.mu.Lock()
		ready := h.ready
		h.mu.Unlock()
		select {
		case <-ready:
		case <-ctx.Done():
			return nil, "", ctx.Err()
		}
		boot = h.BootID()
		p, err = group.Start(program)
		if err != nil || h.AtEnd(boot, p.Kill) {
			return p, boot, err
		}
	}
}
