package rack

import (
	"io"
	"net"
	"sync"
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
	defer from.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return // As if nobody listened there: the caller sees its connection closed.
	}
	defer to.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], way[0])
			// Whoever reads there learns that no more comes.
			way[1].Close()
			way[0].Close()
		})
	}
	both.Wait()
}
