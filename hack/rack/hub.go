package rack

import (
	"context"
	"fmt"
	"net"
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
