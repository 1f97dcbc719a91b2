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

// The addresses of a rack. The rack's network cannot be reached from outside, so they cannot
// collide with others.
const (
	hubAddress = "10.98.0.1"
	hubSubnet  = "/24"
	// firstHost is the last number of the first machine's address.
	firstHost = 11
)

// hub is the network between the machines: a bridge, and the API server behind the address of its
// service.
type hub struct {
	*network
	listener net.Listener
}

// newHub creates the network. Connections to port 443 of the service are forwarded to the server,
// an address of this machine.
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

// plug connects the machine with this number: its own address and those of its pods.
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

// network is a network namespace without a name: it disappears when nothing holds it.
type network struct{ file *os.File }

// newNetwork creates a network namespace.
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

// path returns the path by which other programs can open the namespace while this process lives.
func (n *network) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// run runs command lines in the namespace.
func (n *network) run(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		command := exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + n.path()}, strings.Fields(line)...)...)
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("running %s: %w: %s", line, err, bytes.TrimSpace(output))
		}
	}
	return nil
}

// listen opens a TCP socket in the namespace.
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

// onThreadOfItsOwn runs f on a thread that ends afterwards, because no other code may run in the
// namespaces that f enters.
func onThreadOfItsOwn(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		done <- f()
	}()
	return <-done
}

// forward forwards the connections of a listener to an address of this machine, as kube-proxy does
// for the API server's service. It ends with the listener.
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
		from.Close() // The client sees a connection without a server.
		return
	}
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(way[1], way[0])
			// The reader learns that nothing more comes.
			way[1].Close()
			way[0].Close()
		}()
	}
}
