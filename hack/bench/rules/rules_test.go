package rules

import (
	"reflect"
	"slices"
	"testing"
)

// unset are fields that are no rules, or choose between rules.
var unset = []string{
	"NodeSelector", "NamespaceSelector", "Priority", "Mode", "Pause", "Windows", "Blackouts", "Reboot", "Failures", "TopologyKey", "FailurePolicy", "SecretRef", "Selector",
	"Timeout", "OnTimeout", "GracePeriodSeconds", "EmptyDirData", "UnmanagedPods", "VolumeDetachTimeout", "Rules",
}

func TestSpec_SetsEveryRule(t *testing.T) {
	server := Serve()
	defer server.Close()
	spec := Spec(server, 1, "node-1")
	for _, part := range []any{
		spec, *spec.Urgent, *spec.Requests, *spec.Concurrency, spec.Order[0], *spec.Deadline, *spec.Drain, *spec.Autoscaler, *spec.Hooks, *spec.Gates,
		spec.Gates.BlockingPods[0], spec.Gates.Prometheus[0], spec.Gates.Objects[0], spec.Notify[0],
	} {
		v := reflect.ValueOf(part)
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Field(i).IsZero() && !slices.Contains(unset, name) {
				t.Errorf("%s.%s is not set", v.Type().Name(), name)
			}
		}
	}
}
