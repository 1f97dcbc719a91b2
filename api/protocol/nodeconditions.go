package protocol

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const (
	// maxNodeConditions is the largest number of conditions that a policy may name.
	maxNodeConditions = 10
	// minConditionFor is the shortest time for which a condition must last.
	minConditionFor = time.Minute
)

// nodeConditions is the value of annotation node-conditions.
type nodeConditions []v1alpha1.NodeConditionNeed

// FormatNodeConditions returns the value of annotation node-conditions for the nodes of a policy. It is
// empty if the policy names no conditions.
func FormatNodeConditions(spec *v1alpha1.RebootPolicySpec) string {
	if len(spec.NodeConditions) == 0 {
		return ""
	}
	return format(spec.NodeConditions)
}

// ParseNodeConditions returns the Node conditions that ask for a reboot of the node. It returns nil, nil
// if the annotation is absent, and an error for a value that a manager would not write.
func ParseNodeConditions(annotations map[string]string) ([]v1alpha1.NodeConditionNeed, error) {
	needs, err := parse[nodeConditions](annotations, v1alpha1.AnnotationNodeConditions)
	if needs == nil || err != nil {
		return nil, err
	}
	return *needs, nil
}

func (n *nodeConditions) validate() error {
	if len(*n) > maxNodeConditions {
		return fmt.Errorf("%d conditions are too many", len(*n))
	}
	for _, c := range *n {
		status := c.StatusOrDefault()
		switch {
		case !v1alpha1.CanAskForReboot(c.Type):
			return fmt.Errorf("condition %.64q cannot ask for a reboot", c.Type)
		case status != corev1.ConditionTrue && status != corev1.ConditionFalse:
			return fmt.Errorf("condition %.64q: status must be True or False", c.Type)
		case c.For.Duration < minConditionFor:
			return fmt.Errorf("condition %.64q must last for at least %s", c.Type, minConditionFor)
		}
	}
	return nil
}
