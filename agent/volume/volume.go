// Package volume finds the pods to which volumes belong. A kubelet lists the attached volumes that
// it uses in status.volumesInUse of its Node, by names that do not identify pods. The volumes of a
// pod that stays on the node are found through its claims. Every other volume in that list belonged
// to a pod that has left, so those pods need not be remembered.
package volume

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Use is a volume of a pod that its kubelet may have attached.
type Use struct {
	// Claim is the PersistentVolumeClaim of the volume. It is zero for a volume that the pod
	// describes itself.
	Claim types.NamespacedName
	// Name is the kubelet's name of a volume that the pod describes itself. It is empty for a
	// claim.
	Name corev1.UniqueVolumeName
}

// UsesOf returns the volumes of a pod that may be attached: those of claims, and those of old kinds
// that a pod describes itself. A CSI volume that a pod describes itself is never attached.
func UsesOf(pod *corev1.Pod) []Use {
	var uses []Use
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			uses = append(uses, Use{Claim: types.NamespacedName{Namespace: pod.Namespace, Name: v.PersistentVolumeClaim.ClaimName}})
		case v.Ephemeral != nil:
			uses = append(uses, Use{Claim: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name + "-" + v.Name}})
		default:
			if name := Name(described(v)); name != "" {
				uses = append(uses, Use{Name: name})
			}
		}
	}
	return uses
}

// Unaccounted returns the volumes in use that are not among the accounted ones, in order.
func Unaccounted(inUse, accounted []corev1.UniqueVolumeName) []corev1.UniqueVolumeName {
	var rest []corev1.UniqueVolumeName
	for _, name := range inUse {
		if !slices.Contains(accounted, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	return slices.Compact(rest)
}

// Name returns the name under which a kubelet of Kubernetes 1.30 or later lists a volume in
// status.volumesInUse. It consists of the plugin's name, a slash, and the plugin's name for the
// volume, which for CSI is driver^handle. Volumes of clouds have migrated to CSI, with the handles
// of k8s.io/csi-translation-lib. The name is empty for a volume that is never attached, for example
// of NFS. Some CSI drivers do not attach volumes either; the kubelet then does not list the name.
func Name(pv *corev1.PersistentVolume) corev1.UniqueVolumeName {
	switch s := pv.Spec.PersistentVolumeSource; {
	case s.CSI != nil:
		return csi(s.CSI.Driver, s.CSI.VolumeHandle)
	case s.ISCSI != nil:
		return named("kubernetes.io/iscsi", fmt.Sprintf("%s:%s:%d", s.ISCSI.TargetPortal, s.ISCSI.IQN, s.ISCSI.Lun))
	case s.FC != nil:
		return fibreChannel(s.FC)
	}
	return migrated(pv)
}

// migrated returns the name of a volume of a deprecated kind, which old clusters still have.
func migrated(pv *corev1.PersistentVolume) corev1.UniqueVolumeName {
	switch s := pv.Spec.PersistentVolumeSource; {
	case s.AWSElasticBlockStore != nil:
		id := s.AWSElasticBlockStore.VolumeID // only the ID, or aws://zone/id
		return csi("ebs.csi.aws.com", id[strings.LastIndex(id, "/")+1:])
	case s.AzureDisk != nil:
		return csi("disk.csi.azure.com", s.AzureDisk.DataDiskURI)
	case s.Cinder != nil:
		return csi("cinder.csi.openstack.org", s.Cinder.VolumeID)
	case s.VsphereVolume != nil:
		return csi("csi.vsphere.vmware.com", s.VsphereVolume.VolumePath)
	case s.PortworxVolume != nil:
		return csi("pxd.portworx.com", s.PortworxVolume.VolumeID)
	case s.GCEPersistentDisk != nil:
		return persistentDisk(pv.Labels, s.GCEPersistentDisk.PDName)
	case s.RBD != nil: // removed in Kubernetes 1.31
		return named("kubernetes.io/rbd", s.RBD.RBDPool+":"+s.RBD.RBDImage)
	case s.FlexVolume != nil:
		return named(s.FlexVolume.Driver, pv.Name)
	}
	return ""
}

func csi(driver, handle string) corev1.UniqueVolumeName {
	return named("kubernetes.io/csi", driver+"^"+handle)
}

func named(plugin, volume string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(plugin + "/" + volume)
}

func fibreChannel(s *corev1.FCVolumeSource) corev1.UniqueVolumeName {
	switch {
	case len(s.TargetWWNs) > 0 && s.Lun != nil:
		return named("kubernetes.io/fc", fmt.Sprintf("%v:%d", s.TargetWWNs, *s.Lun))
	case len(s.WWIDs) > 0:
		return named("kubernetes.io/fc", fmt.Sprint(s.WWIDs))
	}
	return ""
}

// persistentDisk returns the name of a disk of GCE in the zone of its label, or in the region of
// its zones. The migration leaves the project unspecified, and the zone of a volume without the
// label.
func persistentDisk(labels map[string]string, disk string) corev1.UniqueVolumeName {
	zone := cmp.Or(labels[corev1.LabelFailureDomainBetaZone], labels[corev1.LabelTopologyZone], "UNSPECIFIED")
	place := "zones/" + zone
	if first, _, several := strings.Cut(zone, "__"); several {
		place = "regions/" + first[:max(strings.LastIndex(first, "-"), 0)]
	}
	return csi("pd.csi.storage.gke.io", "projects/UNSPECIFIED/"+place+"/disks/"+disk)
}

// described converts a volume that a pod describes itself to a PersistentVolume with the same name.
func described(v corev1.Volume) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: v.Name}}
	s := &pv.Spec.PersistentVolumeSource
	s.FC, s.AWSElasticBlockStore, s.AzureDisk = v.FC, v.AWSElasticBlockStore, v.AzureDisk
	s.VsphereVolume, s.PortworxVolume, s.GCEPersistentDisk = v.VsphereVolume, v.PortworxVolume, v.GCEPersistentDisk
	if i := v.ISCSI; i != nil {
		s.ISCSI = &corev1.ISCSIPersistentVolumeSource{TargetPortal: i.TargetPortal, IQN: i.IQN, Lun: i.Lun}
	}
	if c := v.Cinder; c != nil {
		s.Cinder = &corev1.CinderPersistentVolumeSource{VolumeID: c.VolumeID}
	}
	if r := v.RBD; r != nil {
		s.RBD = &corev1.RBDPersistentVolumeSource{RBDPool: r.RBDPool, RBDImage: r.RBDImage}
	}
	if f := v.FlexVolume; f != nil {
		s.FlexVolume = &corev1.FlexPersistentVolumeSource{Driver: f.Driver}
	}
	return pv
}
