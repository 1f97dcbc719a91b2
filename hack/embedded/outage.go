package embedded

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

// Names of the programs of a cluster.
const (
	Etcd                  = "etcd"
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
)

// EtcdAddress is where etcd listens, as a URL.
func (c *Cluster) EtcdAddress() string { return c.etcd }

// Kill ends one of the cluster's programs at once. Until Revive its end is no error of the cluster's. One that is down
// already stays so.
func (c *Cluster) Kill(name string) {
	c.mu.Lock()
	i := slices.IndexFunc(c.programs, func(p *process.Process) bool { return p.Name == name })
	if i < 0 {
		c.mu.Unlock()
		return
	}
	p := c.programs[i]
	c.programs, c.down[name] = slices.Delete(c.programs, i, i+1), c.launched[name]
	c.mu.Unlock()
	p.Kill()
}

// Revive starts a program that Kill has ended, with the data it had, and returns when the API server answers.
func (c *Cluster) Revive(ctx context.Context, name string) error {
	c.mu.Lock()
	program, down := c.down[name]
	delete(c.down, name)
	c.mu.Unlock()
	if !down {
		return nil
	}
	if err := c.run(program); err != nil {
		return err
	}
	return c.awaitServer(ctx)
}

// Signal sends a signal to one of the cluster's programs, such as SIGSTOP.
func (c *Cluster) Signal(name string, signal os.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.programs {
		if p.Name == name {
			return p.Signal(signal)
		}
	}
	return fmt.Errorf("signalling %s: it does not run", name)
}
