package nodepatch

import (
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// A mutating admission policy may change a write. The response shows that.
func TestPatch_UndoneNamesFieldsThatTheResponseLacks(t *testing.T) {
	pending := corev1.Taint{Key: v1alpha1.TaintPending, Effect: corev1.TaintEffectPreferNoSchedule}
	tainted := func(n *corev1.Node, taints ...corev1.Taint) { n.Spec.Taints = append(n.Spec.Taints, taints...) }
	for name, tc := range map[string]struct {
		patch  func(*Patch)
		mutate func(*corev1.Node) // after the patch
		want   []string
	}{
		"an annotation dropped": {
			func(p *Patch) { p.Annotate("c", "1") }, func(n *corev1.Node) { delete(n.Annotations, "c") }, []string{"annotation c"},
		},
		"an annotation changed": {
			func(p *Patch) { p.Annotate("c", "1") }, func(n *corev1.Node) { n.Annotations["c"] = "2" }, []string{"annotation c"},
		},
		"an annotation put back": {
			func(p *Patch) { p.RemoveAnnotation("a") }, func(n *corev1.Node) { n.Annotations["a"] = "1" }, []string{"annotation a"},
		},
		"a label dropped": {
			func(p *Patch) { p.Label("c", "1") }, func(n *corev1.Node) { delete(n.Labels, "c") }, []string{"label c"},
		},
		"a condition dropped": {
			func(p *Patch) { p.Condition(corev1.NodeCondition{Type: "C", Status: "True"}) },
			func(n *corev1.Node) {
				n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == "C" })
			},
			[]string{"condition C"},
		},
		"a condition put back": {
			func(p *Patch) { p.RemoveCondition("B") },
			func(n *corev1.Node) {
				n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "B"})
			},
			[]string{"condition B"},
		},
		"a cordon put back": {
			func(p *Patch) { p.Uncordon() }, func(n *corev1.Node) { n.Spec.Unschedulable = true }, []string{"spec.unschedulable"},
		},
		"a taint dropped": {
			func(p *Patch) { p.Taint([]corev1.Taint{pending}) }, func(n *corev1.Node) { n.Spec.Taints = nil },
			[]string{"taint " + v1alpha1.TaintPending},
		},
		"our taint put back": {
			func(p *Patch) { p.Taint(nil) }, func(n *corev1.Node) { tainted(n, pending) }, []string{"taint " + v1alpha1.TaintPending},
		},
		"several at once": {
			func(p *Patch) { p.Annotate("c", "1"); p.Label("c", "1") },
			func(n *corev1.Node) { delete(n.Annotations, "c"); delete(n.Labels, "c") },
			[]string{"annotation c", "label c"},
		},
		"fields of other programs are added": {
			func(p *Patch) { p.Annotate("c", "1"); p.Taint(nil) },
			func(n *corev1.Node) {
				n.Annotations["stamped"], n.Labels["stamped"] = "now", "now"
				tainted(n, corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoSchedule})
			}, nil,
		},
		"a message that is not UTF-8": {
			func(p *Patch) { p.Condition(corev1.NodeCondition{Type: "B", Message: "a\xffb"}) }, func(*corev1.Node) {}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := New("")
			tc.patch(p)
			answer := patched(t, makeNode(), p)
			if got := p.Undone(answer); len(got) > 0 {
				t.Fatalf("before anybody interferes: %q", got)
			}
			answer.Status.Conditions = slices.Clone(answer.Status.Conditions)
			tc.mutate(answer)
			if diff := gocmp.Diff(tc.want, p.Undone(answer)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
