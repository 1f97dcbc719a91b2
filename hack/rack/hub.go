package rack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// The addresses of a rack. They are nobody else's: the rack's network is reachable from nowhere.
const (
	hubAddress = "10.98.0.1"
	hubSubnet  = "/24"
	// firstHost is the last number of the first machine's address.
	firstHost = 11
)

// hub is the network between the machines: a bridge, and the API server behind its service's address.
type hub struct {
	*network
	listener net.Listener
}

// newHub makes the network. Connections to the service's port 443 are carried to the server, an address of this machine.
func newHub(ctx context.Context, service, server string) (*hub, error) {
	n, err := newNetwork()
	if err != nil {
		return nil, err
	}
	h := &hub{network: n}
	if err := h.run(ctx,
		"ip link set lo up",
		"ip link add hub type bridge",
		"ip addr add "+hubAddress+hubSubnet+" dev hub",
		"ip link set hub up",
		"ip addr add "+service+"/32 dev lo",
		"sysctl -q -w net.ipv4.ip_forward=1",
	); err != nil {
		return nil, err
	}
	if h.listener, err = h.listen(net.JoinHostPort(service, "443")); err != nil {
		return nil, fmt.Errorf("listening at the service's address: %w", err)
	}
	go forward(h.listener, server)
	return h, nil
}

// plug connects a machine by number: its address and that of its pods.
func (h *hub) plug(ctx context.Context, number int) (*network, error) {
	n, err := newNetwork()
	if err != nil {
		return nil, err
	}
	port := fmt.Sprintf("port%d", number)
	if err := h.run(ctx,
		"ip link add "+port+" type veth peer name eth0 netns "+n.path(),
		"ip link set "+port+" master hub up",
		"ip route add "+podsOf(number)+" via "+addressOf(number),
	); err != nil {
		return nil, err
	}
	return n, n.run(ctx,
		"ip link set lo up",
		"ip addr add "+addressOf(number)+hubSubnet+" dev eth0",
		"ip link set eth0 up",
		"ip route add default via "+hubAddress,
		"sysctl -q -w net.ipv4.ip_forward=1",
	)
}

func (h *hub) close() {
	if h.listener != nil {
		h.listener.Close()
	}
	h.network.close()
}

func addressOf(number int) string { return fmt.Sprintf("10.98.0.%d", firstHost+number) }
func podsOf(number int) string    { return fmt.Sprintf("10.98.%d.0/24", firstHost+number) }

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

// forward carries connections that come to a listener on to an address of this machine: what kube-proxy would do for the
// API server's service. It ends with the listener.
func forward(listener net.Listener, address string) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		go carry(from, address)
	}
}

func carry(from net.Conn, address string) {
	to, err := net.Dial("tcp", address)
	if err != nil {
		from.Close() // As if nobody listened there.
		return
	}
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(way[1], way[0])
			// Whoever reads there learns that no more comes.
			way[1].Close()
			way[0].Close()
		}()
	}
}
