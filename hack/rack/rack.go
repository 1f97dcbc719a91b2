// Package rack is a rack of real machines in this one, by Debian in systemd-nspawn. Each has a systemd, a logind, a system bus with
// update_engine on it, containerd and a kubelet of its own. They reboot as machines do, by their logind, and come up with another boot
// ID. It needs root and what hack/e2e/prepare.sh brings.
//
// Nothing is shared with this machine's network, and nothing survives. Mounts and network namespaces end with the processes that hold
// them. A machine is halted when whoever runs the rack dies.
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
	// prefix begins the names of folders and cgroups: prefix, the process ID of whoever runs the rack, a dot, something.
	prefix = "reboot-rack."
	// haltLimit is how long machines have to go down in order when the rack is taken down.
	haltLimit = 30 * time.Second
	// haltAgain is how soon a machine that is still on is reported again.
	haltAgain = 5 * time.Second
	// halt is the signal to PID 1 that powers a machine off, SIGRTMIN+4 of the C library.
	halt = syscall.Signal(38)
)

// Options states what rack to set up.
type Options struct {
	// Prepared is the folder that hack/e2e/prepare.sh has filled.
	Prepared string
	// Suites are the Debians of the machines, which are node-1 and so on.
	Suites []string
	// Images are what their containerds hold. One must be localhost/idle:1, which holds pods' namespaces.
	Images []Image
	// Service is the address that pods know the API server by, Server the address of this machine behind it.
	Service, Server string
	// Kubeconfig makes the kubeconfig of a node.
	Kubeconfig func(node string) ([]byte, error)
}

// Rack is a rack of machines.
type Rack struct {
	// Machines are in the order of their names.
	Machines []*Machine

	prepared string
	folder   string
	hub      *hub
	// power ends when the rack is taken down.
	power context.Context //nolint:containedctx // it is the life of all machines
	cut   context.CancelFunc
}

// Start sets a rack up and switches its machines on. It first removes what an earlier one has left behind whose process was
// killed. It does not wait for the machines to be up. When it fails half-way, nothing is left.
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

// gear is what every machine gets from outside, read-only.
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

// copyFile makes a second name of a file, or a copy where that is another file system.
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

// Err is what is wrong with machines that went down for good.
func (r *Rack) Err() error {
	var errs []error
	for _, m := range r.Machines {
		errs = append(errs, m.Err())
	}
	return errors.Join(errs...)
}

// Stop powers the machines off, removes everything there was, and returns when it is gone.
func (r *Rack) Stop() error {
	r.cut()
	var errs []error
	// It must work after the caller's context has ended: that is when it is called.
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

// awaitOff asks again now and then, because a machine that has only just been switched on does not listen yet.
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

// powerOff asks for it; a machine that is off stays off.
func (m *Machine) powerOff() {
	leader, err := m.leader()
	if err == nil {
		err = syscall.Kill(leader, halt)
	}
	if supervisor := int(m.supervisor.Load()); err != nil && supervisor != 0 {
		// It has only just been switched on.
		_ = syscall.Kill(supervisor, syscall.SIGTERM)
	}
}
