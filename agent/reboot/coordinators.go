package reboot

import (
	"cmp"
	"context"
	"fmt"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// HostCoordinators are those who may reboot the host beside the agent; host.Coordinators are the real ones.
type HostCoordinators interface {
	Other(ctx context.Context) (*host.Coordinator, error)
}

// rival names what else may reboot the host, or states that it is unknown. Empty: nothing else.
func rival(other *host.Coordinator, err error) string {
	switch {
	case other == nil && err == nil:
		return ""
	case other == nil:
		return engine.Shorten(fmt.Sprintf("Who else may reboot this host is unknown (fix that, %s): %v.", v1alpha1.CoordinatorAdvice, err))
	case !other.At.IsZero():
		return engine.Shorten(fmt.Sprintf("A shutdown of this host (%s) is scheduled for %s%s: shutdown -c on the host, %s.",
			other.Name, timing.Instant(other.At.UTC()), by(other.By), v1alpha1.CoordinatorAdvice))
	case other.Unit != "":
		off := cmp.Or(other.Off, "systemctl mask --now "+other.Unit)
		return fmt.Sprintf("%s is active on this host and may reboot it at any time: %s on the host, %s.", other.Name, off, v1alpha1.CoordinatorAdvice)
	}
	name := other.Name
	if name == "" {
		name = "A program without a readable NAME"
	}
	return fmt.Sprintf("%s holds /run/update-engine/coordinator.conf on this host and may reboot it at any time: stop that, %s.",
		name, v1alpha1.CoordinatorAdvice)
}

// by names who scheduled a shutdown. Empty: unknown.
func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + who
}
