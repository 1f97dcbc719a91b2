package lifecycle

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// stubborn is a manager whose behaviour a test sets.
type stubborn struct {
	manager.Manager

	added []manager.Runnable
	start func(ctx context.Context, s *stubborn) error
}

func (s *stubborn) Add(r manager.Runnable) error {
	s.added = append(s.added, r)
	return nil
}

func (s *stubborn) Start(ctx context.Context) error { return s.start(ctx, s) }

func (s *stubborn) fill(ctx context.Context) {
	for _, r := range s.added {
		_ = r.Start(ctx)
	}
}

func TestRun_ReturnsInTimeEvenIfTheManagerDoesNot_Behaviour58(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		start func(ctx context.Context, s *stubborn) error
		takes time.Duration
		want  string
	}{
		"ends by itself": {
			start: func(context.Context, *stubborn) error { return broken }, want: "broken",
		},
		"ends with its context": {
			start: func(ctx context.Context, s *stubborn) error {
				s.fill(ctx)
				<-ctx.Done()
				<-time.After(time.Second)
				return nil
			},
			takes: 4 * time.Second,
		},
		"ends badly": {
			start: func(ctx context.Context, s *stubborn) error {
				s.fill(ctx)
				<-ctx.Done()
				return broken
			},
			takes: 3 * time.Second, want: "broken",
		},
		"does not end": {
			start: func(ctx context.Context, s *stubborn) error {
				s.fill(ctx)
				<-time.After(time.Hour)
				return nil
			},
			takes: 3*time.Second + stopLimit, want: "not everything has ended within 4.5s",
		},
		"does not notice before its caches are filled": {
			start: func(context.Context, *stubborn) error {
				<-time.After(time.Hour)
				return nil
			},
			takes: 3 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				begin := time.Now()
				err := Run(ctx, &stubborn{start: tc.start})
				if took := time.Since(begin); took != tc.takes {
					t.Errorf("took %s, want %s", took, tc.takes)
				}
				if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("returned %v, want %q", err, tc.want)
				}
				<-time.After(2 * time.Hour) // The bubble ends the goroutines that are left.
			})
		})
	}
}
