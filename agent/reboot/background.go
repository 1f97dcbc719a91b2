package reboot

import (
	"context"
	"fmt"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
)

// background does one thing at a time until it gets the next order.
type background struct {
	// name is the name of the logger, and appears in errors.
	name   string
	orders chan order
}

// order replaces what is being done.
type order struct {
	// begin is called when the previous work has ended. The work that it returns runs until ctx
	// ends. If begin is nil, nothing runs.
	begin func(ctx context.Context) (work func())
	taken chan struct{}
}

func newBackground(name string) *background {
	return &background{name: name, orders: make(chan order)}
}

// Start carries out orders until ctx ends, and returns when the last work has ended.
func (b *background) Start(ctx context.Context) error {
	ctx = ctrl.LoggerInto(ctx, ctrl.LoggerFrom(ctx).WithName(b.name))
	stop := func() {}
	defer func() { stop() }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case o := <-b.orders:
			stop()
			stop = func() {}
			if o.begin != nil {
				stop = begin(ctx, o)
			}
			close(o.taken)
		}
	}
}

// begin starts the work of an order. The returned function stops the work and waits for its end.
func begin(ctx context.Context, o order) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(o.begin(ctx))
	return func() {
		cancel()
		working.Wait()
	}
}

// order returns once the previous work has ended and the new work has begun, or with ctx's error,
// wrapped.
func (b *background) order(ctx context.Context, begin func(ctx context.Context) (work func())) error {
	o := order{begin: begin, taken: make(chan struct{})}
	select {
	case b.orders <- o:
		<-o.taken
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ordering the %s: %w", b.name, ctx.Err())
	}
}
