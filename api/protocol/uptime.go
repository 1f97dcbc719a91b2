package protocol

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// MinMaxUptime is the shortest spec.maxUptime. Annotation max-uptime of a node may be up to a tenth
// shorter.
const MinMaxUptime = 24 * time.Hour

// ParseMaxUptime returns the longest uptime that annotation max-uptime allows the node. It returns
// 0, which means no limit, if the annotation is absent or has a value that a manager would not
// write.
func ParseMaxUptime(annotations map[string]string) time.Duration {
	most, err := time.ParseDuration(annotations[v1alpha1.AnnotationMaxUptime])
	if err != nil || most < MinMaxUptime-MinMaxUptime/10 {
		return 0
	}
	return most
}
