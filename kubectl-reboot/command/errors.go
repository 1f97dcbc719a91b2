package command

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// each takes joined errors apart; each of them is a sentence.
func each(err error) []error {
	var joined interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &joined):
		return joined.Unwrap()
	}
	return []error{err}
}

// explained adds what to do to errors whose text alone does not explain it.
func explained(err error) error {
	var status apierrors.APIStatus
	switch {
	case !errors.As(err, &status):
		return err
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; ClusterRole reboot-operator-fleet-viewer lets you look, reboot-operator-fleet-operator lets you act", err)
	case apierrors.IsNotFound(err) && (status.Status().Details == nil || status.Status().Details.Name == ""):
		return fmt.Errorf("%w: this cluster has no RebootPolicies, reboot-operator is not installed", err)
	}
	return err
}
