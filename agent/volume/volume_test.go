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
		"nothing is in use":                                               {nil, names{"a"}, nil},
		"all volumes belong to pods that stay":                            {names{"b", "a"}, names{"a", "b"}, nil},
		"volumes are compared by name, not by number":                     {names{"b"}, names{"a"}, names{"b"}},
		"no volume belongs to a pod that stays: listed in order and once": {names{"c", "a", "c"}, nil, names{"a", "c"}},
		"pods that stay have more volumes than are in use":                {names{"a"}, names{"a", "b"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Unaccounted(tc.inUse, tc.accounted)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

type source = corev1.PersistentVolumeSource

// The expected names are those of the kubelet's plugins and k8s.io/csi-translation-lib 1.36.
func TestName(t *testing.T) {
	disk := source{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "d"}}
	for name, tc := range map[string]struct {
		source source
		labels map[string]string
		want   corev1.UniqueVolumeName
	}{
		"CSI": {
			source: source{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "a/b^c"}},
			want:   "kubernetes.io/csi/disk.example.com^a/b^c",
		},
		"NFS is never attached":   {source: source{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/p"}}},
		"local is never attached": {source: source{Local: &corev1.LocalVolumeSource{Path: "/p"}}},
		"iSCSI": {
			source: source{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "10.0.0.1:3260", IQN: "iqn.2026-11.com.example:d", Lun: 3}},
			want:   "kubernetes.io/iscsi/10.0.0.1:3260:iqn.2026-11.com.example:d:3",
		},
		"fibre channel by target": {
			source: source{FC: &corev1.FCVolumeSource{TargetWWNs: []string{"50060e801049cfd1", "50060e801049cfd2"}, Lun: new(int32)}},
			want:   "kubernetes.io/fc/[50060e801049cfd1 50060e801049cfd2]:0",
		},
		"fibre channel by identifier": {
			source: source{FC: &corev1.FCVolumeSource{WWIDs: []string{"3600508b400105e21"}}},
			want:   "kubernetes.io/fc/[3600508b400105e21]",
		},
		"fibre channel by nothing": {source: source{FC: &corev1.FCVolumeSource{}}},
		"AWS with a zone": {
			source: source{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://eu-west-1a/vol-0123"}},
			want:   "kubernetes.io/csi/ebs.csi.aws.com^vol-0123",
		},
		"AWS": {
			source: source{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-0123"}},
			want:   "kubernetes.io/csi/ebs.csi.aws.com^vol-0123",
		},
		"Azure": {
			source: source{AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: "d", DataDiskURI: "/subscriptions/s/disks/d"}},
			want:   "kubernetes.io/csi/disk.csi.azure.com^/subscriptions/s/disks/d",
		},
		"OpenStack": {
			source: source{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "id"}},
			want:   "kubernetes.io/csi/cinder.csi.openstack.org^id",
		},
		"vSphere": {
			source: source{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "[store] volumes/d.vmdk"}},
			want:   "kubernetes.io/csi/csi.vsphere.vmware.com^[store] volumes/d.vmdk",
		},
		"Portworx": {
			source: source{PortworxVolume: &corev1.PortworxVolumeSource{VolumeID: "id"}},
			want:   "kubernetes.io/csi/pxd.portworx.com^id",
		},
		"GCE without a zone": {source: disk, want: "kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"},
		"GCE in a zone": {
			source: disk, labels: map[string]string{corev1.LabelTopologyZone: "europe-west1-b"},
			want: "kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/europe-west1-b/disks/d",
		},
		"GCE in a region": {
			source: disk, labels: map[string]string{corev1.LabelFailureDomainBetaZone: "europe-west1-b__europe-west1-c"},
			want: "kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/regions/europe-west1/disks/d",
		},
		"GCE with a label that is nonsense": {
			source: disk, labels: map[string]string{corev1.LabelTopologyZone: "a__"},
			want: "kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/regions//disks/d",
		},
		"Ceph": {
			source: source{RBD: &corev1.RBDPersistentVolumeSource{RBDPool: "p", RBDImage: "i"}},
			want:   "kubernetes.io/rbd/p:i",
		},
		"FlexVolume": {
			source: source{FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: "example.com/d"}},
			want:   "example.com/d/pv",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", Labels: tc.labels}}
			pv.Spec.PersistentVolumeSource = tc.source
			if diff := cmp.Diff(tc.want, Name(pv)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
