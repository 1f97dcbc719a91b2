package engine

import "context"

// Again makes an engine that runs look once more, without any occasion. What is sent on it is closed once the engine has
// looked and has reported what changed: a need may be withdrawn without a signal.
type Again chan chan<- struct{}

// Look returns once the engine has looked, or with ctx's error where it did not in time.
func (a Again) Look(ctx context.Context) error {
	looked := make(chan struct{})
	select {
	case a <- looked:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-looked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
