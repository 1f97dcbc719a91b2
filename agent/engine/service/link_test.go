package service

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/godbus/dbus/v5"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/source"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

func TestBus_LogsOnceThatItIsLostAndOnceMoreAfterItWasThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged, attempts := 0, 0
		log := funcr.New(func(_, _ string) { logged++ }, funcr.Options{})
		ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), log))
		bus := Bus{Options: source.Options{Clock: clock.RealClock{}}, Connect: func(context.Context) (*dbus.Conn, error) {
			if attempts++; attempts != 3 {
				return nil, errors.New("no bus")
			}
			socket, _ := net.Pipe()
			return dbus.NewConn(socket)
		}}
		lost := func(string, engine.Presence) {
			if attempts == 5 {
				cancel()
			}
		}
		bus.Supervise(ctx, lost, func(context.Context, *dbus.Conn) error { return errors.New("no bus") })
		if logged != 2 {
			t.Errorf("logged %d times, want twice", logged)
		}
	})
}

// A user of the host can send signals faster than they are received.
func TestLink_ReadsAgainAfterSignalsAreMissing_Behaviour5(t *testing.T) {
	bus := hosttest.StartFor(t)
	conn, err := host.SystemBus(bus.Address())(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	received, reads, done := make(chan struct{}), make(chan bool), make(chan error, 1)
	link := Link{Conn: conn, Name: "org.example.Engine", Limit: time.Minute}
	go func() {
		done <- link.Follow(ctx, Occasions{
			Clock: clock.RealClock{}, Rules: [][]dbus.MatchOption{{dbus.WithMatchInterface("org.example.Flood")}},
			Receive: func(context.Context, *dbus.Signal) bool { <-received; return false },
		}, func(_ context.Context, signalled bool) (time.Duration, error) {
			reads <- signalled
			return time.Hour, nil
		})
	}()
	if <-reads {
		t.Error("the first read has a signal as its occasion")
	}
	for range 2 * host.MaxQueued {
		if err := conn.Emit("/", "org.example.Flood.Signal"); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.BusObject().Call("org.freedesktop.DBus.GetId", 0).Err; err != nil { // The reply arrives after the signals.
		t.Fatal(err)
	}
	close(received)
	if !<-reads {
		t.Error("it is read again without a signal")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
