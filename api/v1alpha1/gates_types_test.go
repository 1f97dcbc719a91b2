package v1alpha1_test

import (
	"slices"
	"testing"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// TestObjectGateNames_AreUnique checks that every gate gets its own name. status.gates is keyed by
// name, so the API server would refuse a status in which two gates have the same one.
func TestObjectGateNames_AreUnique(t *testing.T) {
	gate := func(name string) v1alpha1.ObjectGate { return v1alpha1.ObjectGate{Kind: "K", Name: name} }
	got := v1alpha1.ObjectGateNames([]v1alpha1.ObjectGate{gate("a"), gate("a"), gate("a#2"), gate(""), gate("a")})
	if want := []string{"K/a", "K/a#2", "K/a#2#2", "K/*", "K/a#3"}; !slices.Equal(got, want) {
		t.Errorf("names %v, want %v", got, want)
	}
}
