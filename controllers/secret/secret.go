// Package secret reads the Secrets that policies name.
package secret

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reader reads Secrets of the operator's namespace, live, because the manager may not list or watch
// them.
type Reader struct {
	client.Reader

	Namespace string
}

// Secret reads one Secret. Its error is a sentence for a status.
func (r Reader) Secret(ctx context.Context, name string) (*corev1.Secret, error) {
	if r.Namespace == "" {
		return nil, fmt.Errorf("Secret %s cannot be read: the manager runs without --namespace", name)
	}
	var secret corev1.Secret
	err := r.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("Secret %s is missing in namespace %s", name, r.Namespace)
	case err != nil:
		return nil, fmt.Errorf("reading Secret %s in namespace %s: %w", name, r.Namespace, err)
	}
	return &secret, nil
}
