package service

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/godbus/dbus/v5"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/source"
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
