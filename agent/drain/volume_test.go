package drain

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestClaims(t *testing.T) {
	volumes := []corev1.Volume{
		{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "a"}}},
		{VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: volumes}}
	if got := claims(pod); got != 2 {
		t.Errorf("claims = %d, want those of the claim and of the ephemeral volume", got)
	}
	pod.Status.Phase = corev1.PodSucceeded
	if got := claims(pod); got != 0 {
		t.Errorf("claims = %d of a pod that has completed, want none", got)
	}
}

// Only the volumes of pods that stay may stay in use.
func TestKept(t *testing.T) {
	p := newProgress()
	stays := target{uid: "stays", volumes: 2, decision: decision{action: v1alpha1.DrainSkip}}
	goes := target{uid: "goes", volumes: 3, decision: decision{action: v1alpha1.DrainEvict}}
	p.replace([]target{stays, goes})
	expect := func(want int, when string) {
		t.Helper()
		if got := p.kept(); got != want {
			t.Errorf("kept = %d %s, want %d", got, when, want)
		}
	}
	expect(2, "at first")
	p.put(target{uid: "late", volumes: 1, decision: decision{action: v1alpha1.DrainSkip}})
	expect(3, "with a late one")
	p.remove(types.UID("late"))
	expect(2, "when it is gone")
	p.replace([]target{goes})
	expect(0, "after a LIST without it")
}
