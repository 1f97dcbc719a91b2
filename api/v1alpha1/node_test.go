package v1alpha1_test

import (
	"testing"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Behaviour 23: any value pauses but the empty one and "false", and gives the reason.
func TestNodePause(t *testing.T) {
	for value, want := range map[string]struct {
		reason string
		paused bool
	}{
		"true": {"", true}, " ": {"", true}, "disk swap": {"disk swap", true}, "yes": {"yes", true}, "True": {"True", true}, "falsehood": {"falsehood", true},
		"false": {"", false}, "": {"", false},
	} {
		annotations := map[string]string{v1alpha1.AnnotationPaused: value}
		if got := v1alpha1.NodeIsPaused(annotations); got != want.paused {
			t.Errorf("NodeIsPaused(%q) = %v, want %v", value, got, want.paused)
		}
		if got := v1alpha1.PauseReason(annotations); got != want.reason {
			t.Errorf("PauseReason(%q) = %q, want %q", value, got, want.reason)
		}
	}
	if v1alpha1.NodeIsPaused(nil) {
		t.Error("a node without annotations is paused")
	}
}
