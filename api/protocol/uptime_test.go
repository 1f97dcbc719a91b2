package protocol_test

import (
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestParseMaxUptime(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"683h12m0s": 683*time.Hour + 12*time.Minute,
		"21h36m0s":  21*time.Hour + 36*time.Minute,
		"21h35m59s": 0, "1s": 0, "0s": 0, "-720h": 0, "": 0, "720": 0, "a month": 0, "9999999999h": 0,
	} {
		if got := protocol.ParseMaxUptime(map[string]string{v1alpha1.AnnotationMaxUptime: value}); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
	if got := protocol.ParseMaxUptime(nil); got != 0 {
		t.Errorf("without the annotation: %s", got)
	}
}
