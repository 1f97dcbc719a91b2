package controllers_test

import (
	"runtime/debug"
	"testing"

	"github.com/reboot-operator/reboot-operator/controllers"
)

func TestLimitGarbage(t *testing.T) {
	for gogc, want := range map[string]int{"": 50, "200": 77} {
		before := debug.SetGCPercent(77)
		controllers.LimitGarbage(gogc)
		if got := debug.SetGCPercent(before); got != want {
			t.Errorf("GOGC=%s: %d %%, want %d %%", gogc, got, want)
		}
	}
}
