package reboot

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/agent/volume"
)

// storage serves claims and volumes, and records what is requested.
type storage struct {
	client.Reader
	claims  map[string]corev1.PersistentVolumeClaim
	volumes map[string]corev1.PersistentVolume
	errs    map[string]error
	asked   []string
}

func (s *storage) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.asked = append(s.asked, key.String())
	if err := s.errs[key.Name]; err != nil {
		return err
	}
	switch object := object.(type) {
	case *corev1.PersistentVolumeClaim:
		if claim, found := s.claims[key.String()]; found {
			claim.DeepCopyInto(object)
			return nil
		}
	case *corev1.PersistentVolume:
		if pv, found := s.volumes[key.Name]; found {
			pv.DeepCopyInto(object)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// bind adds claim a/name and volume pv-name, bound to each other.
func (s *storage) bind(name string, source corev1.PersistentVolumeSource) {
	uid := types.UID("uid-" + name)
	s.claims["a/"+name] = corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + name},
	}
	s.volumes["pv-"+name] = corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: source, ClaimRef: &corev1.ObjectReference{UID: uid},
	}}
}

func TestKept(t *testing.T) {
	disk := corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk", VolumeHandle: "1"}}
	nfs := corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}}
	claim := func(name string) volume.Use {
		return volume.Use{Claim: types.NamespacedName{Namespace: "a", Name: name}}
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "disk", nil)
	for name, tc := range map[string]struct {
		uses   []volume.Use
		change func(*storage)
		want   []corev1.UniqueVolumeName
		unread string
		asked  []string
	}{
		"a claim of CSI": {
			uses: []volume.Use{claim("disk")},
			want: []corev1.UniqueVolumeName{"kubernetes.io/csi/disk^1"}, asked: []string{"a/disk", "/pv-disk"},
		},
		"a claim of NFS, which the kubelet never lists": {
			uses: []volume.Use{claim("nfs")}, want: []corev1.UniqueVolumeName{""}, asked: []string{"a/nfs", "/pv-nfs"},
		},
		"a volume that the pod names itself": {
			uses: []volume.Use{{Name: "kubernetes.io/iscsi/p:q:0"}}, want: []corev1.UniqueVolumeName{"kubernetes.io/iscsi/p:q:0"},
		},
		"a claim that is gone":     {uses: []volume.Use{claim("gone")}, want: []corev1.UniqueVolumeName{""}, asked: []string{"a/gone"}},
		"a claim without a volume": {uses: []volume.Use{claim("new")}, want: []corev1.UniqueVolumeName{""}, asked: []string{"a/new"}},
		"a claim for another claim's volume": {
			uses: []volume.Use{claim("thief")}, want: []corev1.UniqueVolumeName{""}, asked: []string{"a/thief", "/pv-disk"},
		},
		"a claim that cannot be read, and one that can": {
			uses:   []volume.Use{claim("disk"), claim("nfs")},
			change: func(s *storage) { s.errs["disk"] = forbidden },
			want:   []corev1.UniqueVolumeName{""}, unread: `reading claim "a/disk": persistentvolumeclaims "disk" is forbidden`,
			asked: []string{"a/disk", "a/nfs", "/pv-nfs"},
		},
		"a volume that cannot be read": {
			uses:   []volume.Use{claim("disk")},
			change: func(s *storage) { s.errs["pv-disk"] = errAPI },
			unread: `reading volume "pv-disk" of claim "a/disk": the API server is away`, asked: []string{"a/disk", "/pv-disk"},
		},
		"nothing is read if no pod that stays may have volumes": {},
	} {
		t.Run(name, func(t *testing.T) {
			s := &storage{
				claims: map[string]corev1.PersistentVolumeClaim{
					"a/new": {}, "a/thief": {ObjectMeta: metav1.ObjectMeta{UID: "t"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-disk"}},
				},
				volumes: map[string]corev1.PersistentVolume{}, errs: map[string]error{},
			}
			s.bind("disk", disk)
			s.bind("nfs", nfs)
			if tc.change != nil {
				tc.change(s)
			}
			var c claims
			got := c.kept(t.Context(), s, 1, tc.uses)
			if diff := cmp.Diff(tc.want, got.Names); diff != "" {
				t.Errorf("names (-want,+got):\n%s", diff)
			}
			if !strings.HasPrefix(got.Unread, tc.unread) || (got.Unread == "") != (tc.unread == "") {
				t.Errorf("unread %q, want %q", got.Unread, tc.unread)
			}
			if diff := cmp.Diff(tc.asked, s.asked); diff != "" {
				t.Errorf("asked (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestKept_AsksOnceForEachClaimOfAnAttempt(t *testing.T) {
	s := &storage{claims: map[string]corev1.PersistentVolumeClaim{}, volumes: map[string]corev1.PersistentVolume{}, errs: map[string]error{}}
	s.bind("nfs", corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}})
	var c claims
	asked := func(attempt int64, want int, when string) {
		t.Helper()
		c.kept(t.Context(), s, attempt, []volume.Use{{Claim: types.NamespacedName{Namespace: "a", Name: "nfs"}}})
		if len(s.asked) != want {
			t.Errorf("%s: asked for %q", when, s.asked)
		}
	}
	s.errs["nfs"] = errAPI
	asked(1, 1, "at first")
	delete(s.errs, "nfs")
	asked(1, 3, "again after an error")
	asked(1, 3, "not again")
	asked(2, 5, "again in the next attempt")
}
