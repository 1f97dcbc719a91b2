package rack

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// network is a network namespace. It has no name: it is gone once nobody holds it.
type network struct{ file *os.File }

// newNetwork makes a network namespace.
func newNetwork() (*network, error) {
	n := &network{}
	err := onThreadOfItsOwn(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("making a network namespace: %w", err)
		}
		var err error
		n.file, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return n, err
}

// path names the namespace to other programs while this process lives.
func (n *network) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// run runs command lines inside.
func (n *network) run(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		command := exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + n.path()}, strings.Fields(line)...)...)
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("running %s: %w: %s", line, err, bytes.TrimSpace(output))
		}
	}
	return nil
}

// listen opens a TCP socket inside, which stays inside.
func (n *network) listen(address string) (net.Listener, error) {
	var listener net.Listener
	err := onThreadOfItsOwn(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering a network namespace: %w", err)
		}
		var err error
		listener, err = net.Listen("tcp", address)
		return err
	})
	return listener, err
}

func (n *network) close() { _ = n.file.Close() }

// onThreadOfItsOwn runs f on a thread that ends with it, since nothing else may run in the namespaces it enters.
func onThreadOfItsOwn(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		done <- f()
	}()
	return <-done
}
