package host

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/godbus/dbus/v5"
	"k8s.io/utils/clock"
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
	// Broken is told each time a connection could not be made, or a session ended, and why. Required.
	Broken func(error)
}

// Run opens one connection after the other and runs session on each, until ctx ends. Each connection is closed after its
// session. A session that lasted starts the pauses over.
func (s Supervisor) Run(ctx context.Context, session Session) {
	pause := firstPause
	for {
		began := s.Clock.Now()
		err := s.once(ctx, session)
		if ctx.Err() != nil {
			return
		}
		s.Broken(err)
		if s.Clock.Since(began) > lastPause {
			pause = firstPause
		}
		if !s.wait(ctx, pause/2+rand.N(pause)) {
			return
		}
		pause = min(2*pause, lastPause)
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

// wait tells whether the pause passed before ctx ended.
func (s Supervisor) wait(ctx context.Context, pause time.Duration) bool {
	timer := s.Clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
