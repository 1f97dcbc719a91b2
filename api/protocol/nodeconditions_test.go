package protocol_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestParseNodeConditions_ReadsWhatTheManagerWrites(t *testing.T) {
	minute := v1alpha1.Duration{Duration: time.Minute}
	spec := v1alpha1.RebootPolicySpec{NodeConditions: []v1alpha1.NodeConditionNeed{
		{Type: "KernelDeadlock", For: minute}, {Type: "example.com/GPUHealthy", Status: corev1.ConditionFalse, For: minute},
	}}
	value := protocol.FormatNodeConditions(&spec)
	got, err := protocol.ParseNodeConditions(map[string]string{v1alpha1.AnnotationNodeConditions: value})
	if diff := cmp.Diff(spec.NodeConditions, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got := protocol.FormatNodeConditions(&v1alpha1.RebootPolicySpec{}); got != "" {
		t.Errorf("without conditions: %q", got)
	}
	if got, err := protocol.ParseNodeConditions(nil); got != nil || err != nil {
		t.Errorf("without the annotation: %v, %v", got, err)
	}
}

func TestParseNodeConditions_RefusesWhatAManagerWouldNotWrite(t *testing.T) {
	for _, value := range []string{
		"", "null", "{}", `[{}]`, `[{"type":"KernelDeadlock"}]`, `[{"type":"KernelDeadlock","for":"59s"}]`, `[{"type":"KernelDeadlock","for":"-1h"}]`,
		`[{"type":"KernelDeadlock","status":"Unknown","for":"10m"}]`, `[{"type":"Ready","status":"False","for":"10m"}]`,
		`[{"type":"RebootRequired","for":"10m"}]`, `[{"type":"MaintenancePlanned","for":"10m"}]`,
		"[" + strings.Repeat(`{"type":"KernelDeadlock","for":"10m"},`, 10) + `{"type":"KernelDeadlock","for":"10m"}]`,
	} {
		if got, err := protocol.ParseNodeConditions(map[string]string{v1alpha1.AnnotationNodeConditions: value}); err == nil {
			t.Errorf("%.80s: %v", value, got)
		}
	}
}
