// Package rack runs several real machines in this one: Debian in systemd-nspawn. Each has its own
// systemd, logind, system bus with update_engine, containerd and kubelet. They reboot through
// logind as real machines do, and come up with a new boot ID. The package needs root and the output
// of hack/e2e/prepare.sh.
//
// It shares nothing with this machine's network and leaves nothing behind. Mounts and network
// namespaces end with the processes that hold them, and a machine halts when the process that runs
// the rack dies.
package rack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	// prefix begins the names of folders and cgroups. The process ID of the rack's owner, a dot and
	// a suffix follow.
	prefix = "reboot-rack."
	// haltLimit is the time that machines get to shut down when the rack stops.
	haltLimit = 30 * time.Second
	// haltAgain is the pause before a machine that is still on is told to halt again.
	haltAgain = 5 * time.Second
	// halt is the signal to PID 1 that powers a machine off, SIGRTMIN+4 of the C library.
	halt = syscall.Signal(38)
)

// Options describes the rack to set up.
type Options struct {
	// Prepared is the folder that hack/e2e/prepare.sh has filled.
	Prepared string
	// Suites are the Debian releases of the machines. The machines are named node-1 and so on.
	Suites []string
	// Images are loaded into each containerd. One must be localhost/idle:1, which holds the pods'
	// namespaces.
	Images []Image
	// Service is the address by which pods know the API server. Server is the address behind it on
	// this machine.
	Service, Server string
	// Kubeconfig returns the kubeconfig of a node.
	Kubeconfig func(node string) ([]byte, error)
}

// Rack is a rack of machines.
type Rack struct {
	// Machines are sorted by name.
	Machines []*Machine

	prepared string
	folder   string
	hub      *hub
	// power ends when the rack stops.
	power context.Context //nolint:containedctx // it is the life of all machines
	cut   context.CancelFunc
}

// Start sets up a rack and switches its machines on. It first removes what a killed rack left
// behind. It does not wait until the machines are up. If it fails halfway, it leaves nothing
// behind.
func Start(ctx context.Context, o Options) (*Rack, error) {
	if err := Sweep(); err != nil {
		return nil, err
	}
	r := &Rack{prepared: o.Prepared}
	r.power, r.cut = context.WithCancel(context.WithoutCancel(ctx))
	if err := r.start(ctx, o); err != nil {
		return nil, errors.Join(err, r.Stop())
	}
	return r, nil
}

func (r *Rack) start(ctx context.Context, o Options) error {
	var err error
	if r.folder, err = os.MkdirTemp("", fmt.Sprintf("%s%d.", prefix, os.Getpid())); err != nil {
		return fmt.Errorf("making the rack's folder: %w", err)
	}
	if err := moreWatches(r.folder); err != nil {
		return err
	}
	if err := r.fillGear(o.Images); err != nil {
		return err
	}
	if r.hub, err = newHub(ctx, o.Service, o.Server); err != nil {
		return err
	}
	for i, suite := range o.Suites {
		m := &Machine{
			Name: "node-" + strconv.Itoa(i+1), Suite: suite, Address: addressOf(i), number: i, rack: r, done: make(chan struct{}),
		}
		if err := r.setUp(ctx, m, o); err != nil {
			return err
		}
		r.Machines = append(r.Machines, m)
		go m.supply()
	}
	return nil
}

func (r *Rack) setUp(ctx context.Context, m *Machine, o Options) error {
	kubeconfig, err := o.Kubeconfig(m.Name)
	if err != nil {
		return err
	}
	if m.network, err = r.hub.plug(ctx, m.number); err != nil {
		return err
	}
	m.cgroup, err = newCgroup(fmt.Sprintf("%s%d.%s", prefix, os.Getpid(), m.Name))
	return errors.Join(err, m.install(kubeconfig))
}

// gear is the folder that every machine gets from outside, read-only.
func (r *Rack) gear() string { return filepath.Join(r.folder, "gear") }

// fillGear links the programs, and packs the images.
func (r *Rack) fillGear(images []Image) error {
	if err := os.MkdirAll(filepath.Join(r.gear(), "images"), 0o755); err != nil {
		return fmt.Errorf("making the rack's folder: %w", err)
	}
	for _, program := range []string{"kubelet", "update-engine"} {
		if err := copyFile(filepath.Join(r.prepared, program), filepath.Join(r.gear(), program)); err != nil {
			return err
		}
	}
	for i, image := range images {
		path := filepath.Join(r.gear(), "images", strconv.Itoa(i)+".tar")
		write := func() error { return Write(path, image) }
		if image.Archive != "" {
			write = func() error { return copyFile(image.Archive, path) }
		}
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// copyFile links a file, or copies it to another file system.
func copyFile(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	program, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	if err := os.WriteFile(to, program, 0o755); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}

// Err returns what is wrong with machines that went down for good.
func (r *Rack) Err() error {
	var errs []error
	for _, m := range r.Machines {
		errs = append(errs, m.Err())
	}
	return errors.Join(errs...)
}

// Stop powers off the machines and removes everything. It returns when all is gone.
func (r *Rack) Stop() error {
	r.cut()
	var errs []error
	// Stop is usually called after the caller's context has ended, so it must not use that context.
	ctx, cancel := context.WithTimeout(context.Background(), haltLimit)
	defer cancel()
	for _, m := range r.Machines {
		m.powerOff()
	}
	for _, m := range r.Machines {
		m.awaitOff(ctx)
		m.network.close()
		errs = append(errs, m.cgroup.remove())
	}
	if r.hub != nil {
		r.hub.close()
	}
	return errors.Join(append(errs, restoreWatches(r.folder), os.RemoveAll(r.folder))...)
}

// awaitOff repeats the request now and then, because a machine that was just switched on does not
// listen yet.
func (m *Machine) awaitOff(ctx context.Context) {
	for {
		select {
		case <-m.done:
			return
		case <-time.After(haltAgain):
			m.powerOff()
		case <-ctx.Done():
			killAll(m.cgroup)
			<-m.done
			return
		}
	}
}

// powerOff tells the machine to power off. A machine that is off stays off.
func (m *Machine) powerOff() {
	leader, err := m.leader()
	if err == nil {
		err = syscall.Kill(leader, halt)
	}
	if supervisor := int(m.supervisor.Load()); err != nil && supervisor != 0 {
		// The machine was just switched on.
		_ = syscall.Kill(supervisor, syscall.SIGTERM)
	}
}
