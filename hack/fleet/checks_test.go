package fleet

import (
	"context"
	"testing"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

// check fails where the judge finds anything, and where no attempt was seen.
func check(t *testing.T, f *Fleet) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	history, err := f.Recorder.Feed.Await(ctx)
	must(t, err)
	j := judge.New(judge.Options{TrueClocks: true})
	attempts := 0
	for _, r := range history {
		j.Take(r)
		if r.Node != nil && r.Node.Annotations[v1alpha1.AnnotationProgress] != "" {
			attempts++
		}
	}
	for _, v := range j.Violations() {
		t.Error(v)
	}
	if attempts == 0 {
		t.Error("the witness has seen no attempt")
	}
}
