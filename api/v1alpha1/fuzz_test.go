package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// readsBack checks that what was read of an annotation is written so that it reads as itself, and can be written at all.
func readsBack[T fmt.Stringer](t *testing.T, value string, parse func(map[string]string) (*T, error), key string) *T {
	t.Helper()
	got, err := parse(map[string]string{key: value})
	if err != nil {
		if got != nil {
			t.Errorf("%q is %v, although %v", value, got, err)
		}
		return nil
	}
	if got == nil {
		t.Fatalf("%q is neither a record nor an error", value)
	}
	written := (*got).String()
	if !utf8.ValidString(written) {
		t.Errorf("%q is written as %q", value, written)
	}
	again, err := parse(map[string]string{key: written})
	// Characters that JSON writes in six bytes may make a long one too long.
	if err != nil && !strings.Contains(err.Error(), "bytes are too many") {
		t.Errorf("%q is written as %q, which cannot be read: %v", value, written, err)
	}
	if diff := cmp.Diff(got, again); err == nil && diff != "" {
		t.Errorf("%q does not read back (-want +got):\n%s", value, diff)
	}
	return got
}

func FuzzParseObjection(f *testing.F) {
	f.Add(`{"reason":"Inhibited","message":"held by backup"}`)
	f.Add(`{"reason":"A","message":"<","also":[{"reason":"B","message":"\ud800","also":[{"reason":"C"}]},{"reason":"D"}]}`)
	f.Add(`{"reason":"A","also":[{}]}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, value string) {
		objection := readsBack(t, value, v1alpha1.ParseObjection, v1alpha1.AnnotationObjection)
		for _, one := range objection.All() {
			if one.Reason == "" {
				t.Errorf("%q objects without a reason", value)
			}
		}
	})
}

func FuzzParseHookPhase(f *testing.F) {
	f.Add(v1alpha1.HookPhase{Seq: 7, Stage: v1alpha1.HooksAfter, At: noon}.String())
	f.Add(`{"seq":-1,"stage":"Before"}`)
	f.Add(`{"stage":"after"}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, value string) {
		phase := readsBack(t, value, v1alpha1.ParseHookPhase, v1alpha1.AnnotationHooks)
		if phase != nil && phase.Stage != v1alpha1.HooksBefore && phase.Stage != v1alpha1.HooksAfter {
			t.Errorf("%q is of stage %q", value, phase.Stage)
		}
	})
}
