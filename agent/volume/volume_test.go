package volume

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestUsesOf(t *testing.T) {
	claim := func(name string) []Use { return []Use{{Claim: types.NamespacedName{Namespace: "a", Name: name}}} }
	named := func(name corev1.UniqueVolumeName) []Use { return []Use{{Name: name}} }
	for name, tc := range map[string]struct {
		source corev1.VolumeSource
		want   []Use
	}{
		"a claim": {
			corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}, claim("data"),
		},
		"a claim that lives with the pod": {corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}, claim("pod-v")},
		"CSI without a claim is never attached": {
			corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "secrets.example.com"}}, nil,
		},
		"emptyDir": {corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, nil},
		"NFS":      {corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}, nil},
		"iSCSI": {
			corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "p", IQN: "q", Lun: 1}}, named("kubernetes.io/iscsi/p:q:1"),
		},
		"fibre channel": {corev1.VolumeSource{FC: &corev1.FCVolumeSource{WWIDs: []string{"w"}}}, named("kubernetes.io/fc/[w]")},
		"AWS": {
			corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}},
			named("kubernetes.io/csi/ebs.csi.aws.com^vol-1"),
		},
		"Azure": {
			corev1.VolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{DataDiskURI: "/d"}},
			named("kubernetes.io/csi/disk.csi.azure.com^/d"),
		},
		"OpenStack": {
			corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{VolumeID: "id"}}, named("kubernetes.io/csi/cinder.csi.openstack.org^id"),
		},
		"vSphere": {
			corev1.VolumeSource{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "p"}},
			named("kubernetes.io/csi/csi.vsphere.vmware.com^p"),
		},
		"Portworx": {
			corev1.VolumeSource{PortworxVolume: &corev1.PortworxVolumeSource{VolumeID: "id"}}, named("kubernetes.io/csi/pxd.portworx.com^id"),
		},
		"GCE": {
			corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "d"}},
			named("kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
		},
		"Ceph":       {corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{RBDPool: "p", RBDImage: "i"}}, named("kubernetes.io/rbd/p:i")},
		"FlexVolume": {corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "example.com/d"}}, named("example.com/d/v")},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "pod"},
				Spec:       corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: tc.source}}},
			}
			if diff := cmp.Diff(tc.want, UsesOf(pod)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnaccounted(t *testing.T) {
	type names = []corev1.UniqueVolumeName
	for name, tc := range map[string]struct{ inUse, accounted, want names }{
		"nothing is in use":              {nil, names{"a"}, nil},
		"all of it is accounted for":     {names{"b", "a"}, names{"a", "b"}, nil},
		"by names and not by number":     {names{"b"}, names{"a"}, names{"b"}},
		"nothing is, in order and once":  {names{"c", "a", "c"}, nil, names{"a", "c"}},
		"more is accounted for than use": {names{"a"}, names{"a", "b"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Unaccounted(tc.inUse, tc.accounted)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
