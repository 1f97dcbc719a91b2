package protocol

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// MinMaxUptime is the shortest spec.maxUptime. Annotation max-uptime of a node may be a tenth shorter.
const MinMaxUptime = 24 * time.Hour

// ParseMaxUptime returns how long annotation max-uptime lets the node be up. It returns 0, which means no limit, if the annotation is absent
// or has a value that no manager writes.
func ParseMaxUptime(annotations map[string]string) time.Duration {
	most, err := time.ParseDuration(annotations[v1alpha1.AnnotationMaxUptime])
	if err != nil || most < MinMaxUptime-MinMaxUptime/10 {
		return 0
	}
	return most
}
