package scale

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/hack/agents"
)

const (
	// labelReboots marks the nodes that will need a reboot.
	labelReboots = "bench.example.com/reboots"
	// images is the maximum number of images that a kubelet reports (--node-status-max-images).
	images = 50
)

func nodeName(i int) string {
	return fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i>>16, i>>8&255, i&255)
}

// realNode returns a Node like those in real clusters, with about 15 kB of JSON, and managedFields.
// It has labels and annotations of a cloud provider, a network plugin and CSI, conditions of a
// kubelet and a node-problem-detector, and fifty images with two names each. Its agent has reported
// that it is up to date.
func realNode(i int, reboots bool, now time.Time) *corev1.Node {
	name, boot := nodeName(i), fmt.Sprintf("%08x-0000-4000-8000-000000000000", i)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels(name, i), Annotations: annotations(name, i)}}
	if reboots {
		node.Labels[labelReboots] = "true"
	}
	node.Spec = corev1.NodeSpec{
		PodCIDR: fmt.Sprintf("10.%d.%d.0/24", i>>8&255, i&255), PodCIDRs: []string{fmt.Sprintf("10.%d.%d.0/24", i>>8&255, i&255)},
		ProviderID: fmt.Sprintf("aws:///eu-central-1a/i-%017x", i),
	}
	node.Status = corev1.NodeStatus{
		Capacity: resources("16", "64837032Ki"), Allocatable: resources("15890m", "61822376Ki"),
		Conditions: conditions(metav1.NewTime(now)),
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)},
			{Type: corev1.NodeInternalDNS, Address: name},
			{Type: corev1.NodeHostName, Address: name},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
		NodeInfo: corev1.NodeSystemInfo{
			MachineID: fmt.Sprintf("%032x", i), SystemUUID: fmt.Sprintf("ec2%05x-0000-0000-0000-000000000000", i), BootID: boot,
			KernelVersion: "6.12.51-flatcar", OSImage: "Flatcar Container Linux by Kinvolk 4593.1.0 (Oklo)", OperatingSystem: "linux",
			ContainerRuntimeVersion: "containerd://2.1.5", KubeletVersion: "v1.37.2", Architecture: "amd64",
		},
		Images: imageList(i),
	}
	for v := range 3 {
		id := fmt.Sprintf("kubernetes.io/csi/ebs.csi.aws.com^vol-%017x", 3*i+v)
		node.Status.VolumesInUse = append(node.Status.VolumesInUse, corev1.UniqueVolumeName(id))
		node.Status.VolumesAttached = append(node.Status.VolumesAttached, corev1.AttachedVolume{Name: corev1.UniqueVolumeName(id)})
	}
	agents.Report(observed(agents.UpToDate(now), "4593.1.0", now))(node)
	return node
}

// observed adds the version that has been running since some time to an observation.
func observed(o step.Observation, version string, booted time.Time) step.Observation {
	o.OS, o.Uptime = &step.OS{ID: "flatcar", Version: version, Group: "stable"}, time.Since(booted)
	return o
}

func labels(name string, i int) map[string]string {
	zone := "eu-central-1" + string(rune('a'+i%3))
	return map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/instance-type": "m6i.4xlarge",
		corev1.LabelInstanceTypeStable: "m6i.4xlarge", corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: "eu-central-1",
		"failure-domain.beta.kubernetes.io/zone": zone, "failure-domain.beta.kubernetes.io/region": "eu-central-1",
		"topology.ebs.csi.aws.com/zone": zone, "topology.k8s.aws/zone-id": "euc1-az" + string(rune('1'+i%3)),
		"node.kubernetes.io/lifecycle": "normal", "example.com/pool": "workers", "example.com/cluster": "production-eu-1",
		"k8s.io/cloud-provider-aws": "0b5c4c2d0d2a2f6e8f8f5c4ac1c4c5d2", "node-role.kubernetes.io/worker": "",
	}
}

func annotations(name string, i int) map[string]string {
	return map[string]string{
		"csi.volume.kubernetes.io/nodeid":                        fmt.Sprintf(`{"ebs.csi.aws.com":"i-%017x","efs.csi.aws.com":"i-%017x"}`, i, i),
		"node.alpha.kubernetes.io/ttl":                           "300",
		"volumes.kubernetes.io/controller-managed-attach-detach": "true",
		"alpha.kubernetes.io/provided-node-ip":                   fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255),
		"cluster.x-k8s.io/cluster-name":                          "production-eu-1",
		"cluster.x-k8s.io/cluster-namespace":                     "clusters",
		"cluster.x-k8s.io/machine":                               "workers-" + name,
		"cluster.x-k8s.io/owner-kind":                            "MachineSet",
		"cluster.x-k8s.io/owner-name":                            "workers-7d9f6c5b8",
		"network.cilium.io/ipv4-cilium-host":                     fmt.Sprintf("10.%d.%d.113", i>>8&255, i&255),
		"network.cilium.io/ipv4-health-ip":                       fmt.Sprintf("10.%d.%d.251", i>>8&255, i&255),
		"network.cilium.io/ipv4-pod-cidr":                        fmt.Sprintf("10.%d.%d.0/24", i>>8&255, i&255),
	}
}

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		corev1.ResourcePods: resource.MustParse("234"), corev1.ResourceEphemeralStorage: resource.MustParse("104670176Ki"),
		"hugepages-1Gi": resource.MustParse("0"), "hugepages-2Mi": resource.MustParse("0"),
	}
}

// kubeletConditions lists the conditions that a kubelet updates with each heartbeat.
var kubeletConditions = map[corev1.NodeConditionType][2]string{
	corev1.NodeMemoryPressure: {"KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
	corev1.NodeDiskPressure:   {"KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
	corev1.NodePIDPressure:    {"KubeletHasSufficientPID", "kubelet has sufficient PID available"},
	corev1.NodeReady:          {"KubeletReady", "kubelet is posting ready status"},
}

func conditions(now metav1.Time) []corev1.NodeCondition {
	list := []corev1.NodeCondition{
		condition(corev1.NodeNetworkUnavailable, corev1.ConditionFalse, "CiliumIsUp", "Cilium is running on this node", now),
	}
	for _, problem := range []string{"KernelDeadlock", "ReadonlyFilesystem", "FrequentKubeletRestart", "FrequentContainerdRestart", "CorruptDockerOverlay2"} {
		message := "no sign of " + problem + " was found by the node-problem-detector"
		list = append(list, condition(corev1.NodeConditionType(problem), corev1.ConditionFalse, "No"+problem, message, now))
	}
	for kind, reasons := range kubeletConditions {
		status := corev1.ConditionFalse
		if kind == corev1.NodeReady {
			status = corev1.ConditionTrue
		}
		list = append(list, condition(kind, status, reasons[0], reasons[1], now))
	}
	return list
}

func condition(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string, now metav1.Time) corev1.NodeCondition {
	return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
}

// imageList returns images that differ slightly between nodes, as if pods had come and gone.
func imageList(i int) []corev1.ContainerImage {
	list := make([]corev1.ContainerImage, images)
	for n := range list {
		kind := n
		if n >= images-5 {
			kind = 1000 + (i*7+n)%200
		}
		repository := fmt.Sprintf("registry.example.com/team-%02d/service-%04d", kind%17, kind)
		list[n] = corev1.ContainerImage{
			Names: []string{
				repository + "@sha256:" + strings.Repeat(fmt.Sprintf("%08x", kind*2654435761&0xffffffff), 8),
				repository + fmt.Sprintf(":v1.%d.%d", kind%40, kind%9),
			},
			SizeBytes: int64(400-n) << 20,
		}
	}
	return list
}
