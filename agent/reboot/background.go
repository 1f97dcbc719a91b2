package reboot

import (
	"context"
	"fmt"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
)

// background does one thing at a time, until it is asked to do another one, or nothing.
type background struct {
	// name is the logger's, and reports in errors what was ordered.
	name   string
	orders chan order
}

// order is to do something in place of what is being done.
type order struct {
	// begin is called when nothing is being done any more; what it returns is done until ctx ends. Nil: do nothing.
	begin func(ctx context.Context) (work func())
	taken chan struct{}
}

func newBackground(name string) *background {
	return &background{name: name, orders: make(chan order)}
}

// Start carries out orders until ctx ends, and returns when nothing is being done any more.
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

// begin works in the background. The function it returns ends that and waits for the end.
func begin(ctx context.Context, o order) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(o.begin(ctx))
	return func() {
		cancel()
		working.Wait()
	}
}

// order returns once what was being done is over and the new work has begun, or with ctx's error, wrapped.
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
