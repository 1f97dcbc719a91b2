package host

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/godbus/dbus/v5"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/internal/pause"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// The pause before connecting again doubles from first to last, each jittered by half: a bus that restarts is back
// within a second, and one that is not there costs next to nothing.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
)

// Session works on one connection and returns when the connection is of no more use, or ctx ends.
type Session func(ctx context.Context, conn *dbus.Conn) error

// Supervisor keeps a Session going on a bus that comes and goes.
type Supervisor struct {
	// Connect opens a connection. Required.
	Connect Connect
	// Clock measures the pauses. Required.
	Clock clock.Clock
	// Broken is called each time a connection could not be made, or a session ended, and why. Required.
	Broken func(error)
}

// Run opens one connection after the other and runs session on each, until ctx ends. Each connection is closed after its
// session. A session that lasted starts the pauses over.
func (s Supervisor) Run(ctx context.Context, session Session) {
	for failures := 1; ; failures++ {
		began := s.Clock.Now()
		err := s.once(ctx, session)
		if ctx.Err() != nil {
			return
		}
		s.Broken(err)
		if s.Clock.Since(began) > lastPause {
			failures = 1
		}
		wait := timing.Backoff(failures, firstPause, lastPause)
		if !pause.For(ctx, s.Clock, wait/2+rand.N(wait)) {
			return
		}
	}
}

func (s Supervisor) once(ctx context.Context, session Session) error {
	conn, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return session(ctx, conn)
}
