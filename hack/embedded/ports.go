package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are chosen below the kernel's ephemeral range (32768 and up on Linux): a port out of that range could be taken
// by any outgoing connection between our looking and the server's binding.
const (
	firstPort = 20000
	lastPort  = 32000
)

// FreePort finds a free TCP port on 127.0.0.1.
func FreePort(ctx context.Context) (int, error) {
	ports, err := freePorts(ctx, 1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

// freePorts finds n different free TCP ports on 127.0.0.1.
func freePorts(ctx context.Context, n int) ([]int, error) {
	var ports []int
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		ports, listeners = append(ports, port), append(listeners, l)
		if len(ports) == n {
			return ports, nil
		}
	}
	return nil, errors.New("finding free ports on 127.0.0.1: none")
}
