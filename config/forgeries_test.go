package config_test

import (
	"context"
	"encoding/json"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Forged records.
var (
	forgedGrant = annotated("reboot-operator.io/grant",
		`{"policy":"p","seq":9,"bootID":"b1","state":"Active","at":"2026-11-21T00:00:00Z"}`)
	forgedProgress = annotated("reboot-operator.io/progress",
		`{"seq":9,"phase":"Rebooting","bootID":"b1","at":"2026-11-21T00:00:00Z"}`)
	forgedRequest = annotated("reboot-operator.io/reboot-requested", "me")
	forgedNeed    = object{"status": object{"conditions": []object{{"type": "RebootRequired", "status": "True", "reason": "UpdateStaged"}}}}
	forgedBoot    = object{"status": object{"nodeInfo": object{"bootID": "b2"}}}
	// forgedReturn is the status of a node that has rebooted and is back.
	forgedReturn = object{"status": object{"nodeInfo": object{"bootID": "b2"}, "conditions": []object{
		{"type": "Ready", "status": "True"}, {"type": "MaintenanceInProgress", "status": "False"},
	}}}
	forgedRole       = labelled("node-role.kubernetes.io/control-plane", "")
	forgedRestricted = labelled("node-restriction.kubernetes.io/pool", "secret")
)

// What the manager writes, and what only looks like it.
var (
	owner   = []object{{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "8d1f2c3e-0000-4000-8000-000000000000"}}
	owned   = object{"metadata": object{"ownerReferences": owner}}
	granted = object{
		"metadata": object{"annotations": object{
			"reboot-operator.io/grant": "{}", "reboot-operator.io/preflight": "{}", "reboot-operator.io/max-uptime": "720h", "reboot-operator.io/node-conditions": "[]",
			"reboot-operator.io/fleetlock":                         "{}",
			"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true", "karpenter.sh/do-not-disrupt": "true",
		}},
		"status": conditioned("RebootPermitted")["status"],
	}
	askedHooks = object{"metadata": object{
		"labels":      object{"reboot-operator.io/before-reboot": "true"},
		"annotations": object{"reboot-operator.io/hooks": `{"seq":9,"stage":"Before","hooks":["example.com/ok"]}`, "example.com/ok": nil},
	}}
	endedHooks = object{"metadata": object{
		"labels":      object{"reboot-operator.io/before-reboot": nil},
		"annotations": object{"reboot-operator.io/hooks": nil, "example.com/ok": nil},
	}}
)

const ownedPolicy = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"8d1f2c3e-0000-4000-8000-000000000000"}]}}`

// tainted sets the taint that every node here has from others, and additional ones.
func tainted(more ...object) object {
	return object{"spec": object{"taints": append([]object{
		{"key": "dedicated", "value": "db", "effect": "NoSchedule"},
	}, more...)}}
}

// calledHook adds an annotation to the hooks that run, and removes it.
func calledHook(key string) object {
	return object{"metadata": object{"annotations": object{"reboot-operator.io/hooks": `{"hooks":["` + key + `"]}`, key: nil}}}
}

// noHooks lists keys that the API server refuses as hooks.
var noHooks = []string{"karpenter.sh/nodepool-hash", "x-k8s.io/owner", "nfd.node.x-k8s.io/owner", "node.k8s.io/owner"}

func pending(effect string) object {
	return object{"key": "reboot-operator.io/reboot-pending", "effect": effect}
}

// conditioned sets a condition.
func conditioned(kind string) object {
	return object{"status": object{"conditions": []object{{"type": kind, "status": "False", "reason": "Forged"}}}}
}

// createNodeWithRecord creates node n4, which is cordoned, runs hooks, and has annotations of
// others.
func createNodeWithRecord(ctx context.Context, c *cluster) {
	GinkgoHelper()
	node := makeNode("n4")
	node.Spec.Unschedulable = true
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: v1alpha1.TaintPending, Effect: corev1.TaintEffectPreferNoSchedule})
	maps.Copy(node.Annotations, map[string]string{
		v1alpha1.AnnotationGrant: "{}", v1alpha1.AnnotationProgress: "{}",
		v1alpha1.AnnotationHooks: `{"seq":9,"stage":"Before","hooks":["example.com/ok"]}`, "example.com/ok": "true",
		"example.com/other": "x", "csi.volume.kubernetes.io/nodeid": "{}",
	})
	for _, key := range noHooks {
		node.Annotations[key] = "x"
	}
	node.Labels[v1alpha1.LabelBeforeReboot], node.Labels[v1alpha1.LabelExcludeFromLoadBalancers] = "true", v1alpha1.ExcludedByOperator
	_, err := c.admin.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func annotated(key string, value any) object {
	return object{"metadata": object{"annotations": object{key: value}}}
}

func labelled(key string, value any) object {
	return object{"metadata": object{"labels": object{key: value}}}
}

const mountedSecret = "mounted"

// createMountedSecret creates a Secret and a pod on node n1 that mounts it, so that the kubelet of
// n1 may read it.
func createMountedSecret(ctx context.Context, c *cluster) {
	GinkgoHelper()
	_, err := c.admin.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: mountedSecret},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "mounts"}, Spec: corev1.PodSpec{
		NodeName:   "n1",
		Containers: []corev1.Container{{Name: "c", Image: "i"}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: mountedSecret},
		}}},
	}}
	_, err = c.admin.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var (
	getMountedSecret = getSecret(namespace, mountedSecret)
	createNode       = post(nodes+dry, makeNode("n3"))
	// forgeLedger adds a grant to the policy's status.
	forgeLedger = merge(policyPath+"/status"+dry, json.RawMessage(
		`{"status":{"seq":9,"limit":1,"grants":[{"node":"n2","seq":9,"bootID":"b1","at":"2026-11-21T00:00:00Z"}]}}`))
	// widenRole lets a role of the operator do everything.
	widenRole = put(clusterRoles+"/"+agentAccount+dry, object{
		"metadata": object{"name": agentAccount}, "rules": []object{{"apiGroups": []string{"*"}, "resources": []string{"*"}, "verbs": []string{"*"}}},
	})
	// deleteFence removes the policy that limits an agent to its node in the fallback.
	deleteFence = remove("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/reboot-operator-agent-own-node" + dry)
)

func getSecret(namespace, name string) attempt {
	return get("/api/v1/namespaces/" + namespace + "/secrets/" + name)
}

func deleteNode(name string) attempt { return remove(nodes + "/" + name + dry) }

// heartbeatOf renews the Lease by which a kubelet shows that it is alive.
func heartbeatOf(node string) attempt {
	return put(leasesIn(corev1.NamespaceNodeLease)+"/"+node+dry, object{"metadata": object{"name": node}})
}

func leasesIn(namespace string) string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases"
}
