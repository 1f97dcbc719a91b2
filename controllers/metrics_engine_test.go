package controllers

import (
	"testing"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// A node's own word is no label of a metric: whoever writes nodes/status could make any number of series.
func TestEngineLabel_IsOneOfTheKnownReasons(t *testing.T) {
	for need, want := range map[v1alpha1.Reason]string{
		v1alpha1.ReasonUpdateStaged: "UpdateStaged", v1alpha1.ReasonSentinelPresent: "SentinelPresent", v1alpha1.ReasonRequested: "Requested",
		v1alpha1.ReasonMaxUptime: "MaxUptime",
		"MadeUp7f3a":             "Other", v1alpha1.ReasonUpToDate: "Other", "": "Other",
	} {
		if got := engineLabel(need); got != want {
			t.Errorf("the engine of need %q is %q, want %q", need, got, want)
		}
	}
}
