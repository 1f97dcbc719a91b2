package definition_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge/definition"
)

// TestRefusal: a status is refused by each rule of the definition, and by its schema; api/v1alpha1 asks a real API server the same.
func TestRefusal(t *testing.T) {
	crd, err := definition.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	before := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	before.Spec.Concurrency = &v1alpha1.Concurrency{MaxUnavailable: new(intstr.FromInt32(1))}
	at := metav1.NewTime(time.Date(2026, 6, 1, 22, 0, 0, 0, time.UTC))
	before.Status = v1alpha1.RebootPolicyStatus{Limit: 1, Seq: 7, Grants: []v1alpha1.LedgerEntry{{Node: "a", Seq: 7, At: at}}}
	cases := map[string]struct {
		change func(*v1alpha1.RebootPolicyStatus)
		want   string
	}{
		"an entry that is released": {func(s *v1alpha1.RebootPolicyStatus) { s.Grants = nil }, ""},
		"one grant above the limit": {func(s *v1alpha1.RebootPolicyStatus) {
			s.Seq = 8
			s.Grants = append(s.Grants, v1alpha1.LedgerEntry{Node: "b", Seq: 8, At: at})
		}, "no new grant"},
		"a number that goes back":          {func(s *v1alpha1.RebootPolicyStatus) { s.Seq, s.Grants = 6, nil }, "may not shrink"},
		"an entry above the number":        {func(s *v1alpha1.RebootPolicyStatus) { s.Grants[0].Seq = 9 }, "status.seq"},
		"a limit above the spec's":         {func(s *v1alpha1.RebootPolicyStatus) { s.Limit = 2 }, "status.limit"},
		"a name that is longer than names": {func(s *v1alpha1.RebootPolicyStatus) { s.Grants[0].Node = strings.Repeat("a", 300) }, "may not be more than 253"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			tc.change(&after.Status)
			switch err := crd.Refusal(t.Context(), before, after); {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("refused with %v, want %q", err, tc.want)
			}
		})
	}
}
