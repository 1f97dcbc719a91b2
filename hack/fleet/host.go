package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// Host is one machine: everything that its programs see, and its power switch.
type Host struct {
	// Machine has its root file system, boot ID, bus and logind.
	hosttest.Machine
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

	mu      sync.Mutex
	powered chan struct{} // closed while the power is on
	cuts    int
	running []*process.Process
}

// maxFolder is the longest name of a machine's folder. The path of its bus may have 107 bytes.
const maxFolder = 24

// newHost adds a machine, with its own folder, to a simulated node.
func newHost(ctx context.Context, cluster *embedded.Cluster, name string, engine Engine) (*Host, error) {
	root := filepath.Join(cluster.Dir, name[max(0, len(name)-maxFolder):])
	h := &Host{Machine: hosttest.Machine{Name: name, Root: root}, Engine: engine, powered: make(chan struct{})}
	close(h.powered)
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
	node := &corev1.Node{}
	if err := h.kubelet.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return nil, fmt.Errorf("reading node %q: %w", name, err)
	}
	return h, errors.Join(h.SetBootID(node.Status.NodeInfo.BootID), h.startBus())
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
	up := time.After(down)
	h.cutPower()
	silent := testenv.Ready(corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.", time.Now())
	if err := testenv.Report(ctx, h.kubelet, h.Name, "", silent); err != nil {
		return err
	}
	select {
	case <-up:
	case <-ctx.Done():
		return ctx.Err()
	}
	bootID := string(uuid.NewUUID())
	if err := errors.Join(h.boot(), h.SetBootID(bootID)); err != nil {
		return err
	}
	if err := testenv.ReportReady(ctx, h.kubelet, h.Name, bootID); err != nil {
		return err
	}
	h.restorePower()
	return nil
}

// boot starts everything that a machine starts before any pod: a new bus, an update engine without
// an update, and logind.
func (h *Host) boot() error {
	if err := errors.Join(h.mount(h.Engine.upgraded), h.Bus.Restart()); err != nil {
		return err
	}
	return errors.Join(h.updates.boot(), h.Logind.Start())
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

// start starts a program once the power is on, and returns how often the power had been cut by
// then.
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

// cutSince reports whether the power has been cut more often than the given number.
func (h *Host) cutSince(cuts int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cuts > cuts
}
