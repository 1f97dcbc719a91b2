package record

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// uptimeSpread is the divisor for the last part of spec.maxUptime, in which nodes become due: the
// last tenth.
const uptimeSpread = 10

// MaxUptime returns how long a node may be up before it needs a reboot: spec.maxUptime minus up to
// a tenth, by a hash of the node's name. It returns 0 if the policy sets no limit.
func MaxUptime(spec *v1alpha1.RebootPolicySpec, node string) time.Duration {
	if spec.MaxUptime == nil || spec.MaxUptime.Duration < protocol.MinMaxUptime {
		return 0
	}
	most := spec.MaxUptime.Round(time.Second)
	sum := sha256.Sum256([]byte(node)) // unlike fnv, it spreads names that differ in their last digit
	share := float64(binary.BigEndian.Uint32(sum[:])) / (1 << 32)
	return most - time.Duration(share*float64(most/uptimeSpread)).Truncate(time.Second)
}
