package protocol

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// FleetLockLasts is the time for which a request of a FleetLock client counts. The client has to ask
// again before it is over.
const FleetLockLasts = time.Hour

// FleetLockEngine is the name under which the agent reports the requests of a FleetLock client.
const FleetLockEngine = "fleetlock"

// maxClientIDBytes is the length of the longest name of a Node.
const maxClientIDBytes = 253

// FleetLockRequest is the last request of a FleetLock client for a reboot of its host.
type FleetLockRequest struct {
	// BootID is the boot that the reboot should end.
	BootID string `json:"bootID"`
	// ID is the name by which the client asked.
	ID string `json:"id"`
	// At is the time of the request.
	At metav1.Time `json:"at"`
}

// ParseFleetLock reads the request. It returns nil, nil without a request, and an error if it is not
// valid, in which case nobody asks.
func ParseFleetLock(annotations map[string]string) (*FleetLockRequest, error) {
	return parse[FleetLockRequest](annotations, v1alpha1.AnnotationFleetLock)
}

func (r *FleetLockRequest) validate() error {
	if r.BootID == "" || r.ID == "" {
		return errors.New("bootID and id must be set")
	}
	if len(r.ID) > maxClientIDBytes {
		return fmt.Errorf("id has more than %d bytes", maxClientIDBytes)
	}
	return fits(r.BootID, r.At)
}

// String formats the request as the value of its annotation.
func (r FleetLockRequest) String() string { return format(r) }

// Counts reports whether the client asks for a reboot in a boot. The clocks of the manager and of the
// reader may differ, but a request whose time is further ahead than a request lasts does not count.
func (r *FleetLockRequest) Counts(bootID string, now time.Time) bool {
	return r != nil && r.BootID == bootID && now.Sub(r.At.Time).Abs() < FleetLockLasts
}
