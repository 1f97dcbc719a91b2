package rack

import (
	"io"
	"net"
)

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
