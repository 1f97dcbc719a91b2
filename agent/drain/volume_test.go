package drain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/agent/volume"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestUses(t *testing.T) {
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: claim}}}}
	if diff := cmp.Diff([]volume.Use{makeUse("data")}, uses(pod)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	pod.Status.Phase = corev1.PodSucceeded
	if got := uses(pod); got != nil {
		t.Errorf("uses = %v of a pod that has completed, want none", got)
	}
}

// Only the volumes of pods that stay may stay in use.
func TestKept(t *testing.T) {
	p := newProgress()
	stays := target{uid: "stays", volumes: []volume.Use{makeUse("c"), makeUse("b")}, decision: decision{action: v1alpha1.DrainSkip}}
	goes := target{uid: "goes", volumes: []volume.Use{makeUse("gone")}, decision: decision{action: v1alpha1.DrainEvict}}
	p.replace([]target{stays, goes})
	expect := func(when string, names ...string) {
		t.Helper()
		var want []volume.Use
		for _, name := range names {
			want = append(want, makeUse(name))
		}
		if diff := cmp.Diff(want, p.staying.list()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	expect("at first", "b", "c")
	p.put(target{uid: "late", volumes: []volume.Use{makeUse("b"), makeUse("a")}, decision: decision{action: v1alpha1.DrainSkip}})
	expect("with a late one, which shares a volume", "a", "b", "c")
	p.remove(types.UID("late"))
	expect("when it is gone", "b", "c")
	p.replace([]target{goes})
	expect("after a LIST without it")
}

func makeUse(claim string) volume.Use {
	return volume.Use{Claim: types.NamespacedName{Name: claim}}
}
