package reboot

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/agent/volume"
)

// claims caches the kubelet's names of the volumes of claims for one grant. The binding of a claim
// never changes, so each is looked up once. The name is empty for a volume that is never attached.
type claims struct {
	seq   int64
	names map[types.NamespacedName]corev1.UniqueVolumeName
}

// kept looks up the volumes of the pods that stay, with two requests for each of their claims.
func (c *claims) kept(ctx context.Context, live client.Reader, seq int64, uses []volume.Use) step.Kept {
	if c.seq != seq {
		*c = claims{seq: seq, names: map[types.NamespacedName]corev1.UniqueVolumeName{}}
	}
	var kept step.Kept
	for _, use := range uses {
		name, err := c.volumeOf(ctx, live, use)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot determine which volume a pod that stays uses")
			kept.Unread = engine.Shorten(err.Error())
			continue
		}
		kept.Names = append(kept.Names, name)
	}
	return kept
}

// volumeOf returns the kubelet's name of a volume, or an empty string if the volume does not exist
// or is never attached.
func (c *claims) volumeOf(ctx context.Context, live client.Reader, use volume.Use) (corev1.UniqueVolumeName, error) {
	if use.Name != "" {
		return use.Name, nil
	}
	if name, known := c.names[use.Claim]; known {
		return name, nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	if err := live.Get(ctx, use.Claim, claim); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading claim %q: %w", use.Claim, err)
	}
	if claim.Spec.VolumeName == "" {
		return "", nil
	}
	pv := &corev1.PersistentVolume{}
	if err := live.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading volume %q of claim %q: %w", claim.Spec.VolumeName, use.Claim, err)
	}
	// A user who creates a claim may name any volume. Only the controller writes the claim to which
	// a volume is bound.
	if ref := pv.Spec.ClaimRef; ref == nil || ref.UID != claim.UID {
		return "", nil
	}
	name := volume.Name(pv)
	c.names[use.Claim] = name
	return name, nil
}
