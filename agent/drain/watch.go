package drain

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// consume hands the events of a watch on until it ends or one is an error.
func consume(ctx context.Context, w watch.Interface, handle func(watch.Event) error) error {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-w.ResultChan():
			if !ok {
				return nil
			}
			if event.Type == watch.Error {
				return apierrors.FromObject(event.Object)
			}
			if err := handle(event); err != nil {
				return err
			}
		}
	}
}
