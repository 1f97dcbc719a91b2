// This program runs in every pod of the rack and holds the pods' namespaces. After SIGTERM it waits
// for as long as its argument says, or for a second SIGTERM, and exits.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	var linger time.Duration
	if len(os.Args) > 1 {
		var err error
		if linger, err = time.ParseDuration(os.Args[1]); err != nil {
			fmt.Fprintf(os.Stderr, "idle: %v\n", err)
			os.Exit(2)
		}
	}
	end := make(chan os.Signal, 2)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
	select {
	case <-time.After(linger):
	case <-end:
	}
}
