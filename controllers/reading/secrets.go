package reading

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Secrets reads Secrets of the operator's namespace, live, because the manager may not list or watch
// them.
type Secrets struct {
	client.Reader

	Namespace string
}

// Secret reads one Secret. Its error is a sentence for a status.
func (s Secrets) Secret(ctx context.Context, name string) (*corev1.Secret, error) {
	if s.Namespace == "" {
		return nil, fmt.Errorf("Secret %s cannot be read: the manager runs without --namespace", name)
	}
	var secret corev1.Secret
	err := s.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("Secret %s is missing in namespace %s", name, s.Namespace)
	case err != nil:
		return nil, fmt.Errorf("reading Secret %s in namespace %s: %w", name, s.Namespace, err)
	}
	return &secret, nil
}
