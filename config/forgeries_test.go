package config_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// What is not true, or not for the one who writes it to say.
var (
	forgedGrant = annotated("reboot-operator.io/grant",
		`{"policy":"p","seq":9,"bootID":"b1","state":"Active","at":"2026-11-21T00:00:00Z"}`)
	forgedProgress = annotated("reboot-operator.io/progress",
		`{"seq":9,"phase":"Rebooting","bootID":"b1","at":"2026-11-21T00:00:00Z"}`)
	forgedRequest    = annotated("reboot-operator.io/reboot-requested", "me")
	forgedBoot       = object{"status": object{"nodeInfo": object{"bootID": "b2"}}}
	forgedRole       = labelled("node-role.kubernetes.io/control-plane", "")
	forgedRestricted = labelled("node-restriction.kubernetes.io/pool", "secret")
)

func annotated(key string, value any) object {
	return object{"metadata": object{"annotations": object{key: value}}}
}

func labelled(key string, value any) object {
	return object{"metadata": object{"labels": object{key: value}}}
}

const mountedSecret = "mounted"

// createMountedSecret makes a Secret and a pod on node n1 that mounts it, so that the kubelet of n1 may read it.
func (c *cluster) createMountedSecret(ctx context.Context) {
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

func getMountedSecret(ctx context.Context, c kubernetes.Interface) error {
	return getSecret(namespace, mountedSecret)(ctx, c)
}

func getSecret(namespace, name string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}
}

func createNode(ctx context.Context, c kubernetes.Interface) error {
	_, err := c.CoreV1().Nodes().Create(ctx, makeNode("n3"), metav1.CreateOptions{DryRun: dryRun})
	return err
}

func deleteNode(name string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		return c.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{DryRun: dryRun})
	}
}

// heartbeatOf renews the Lease by which a kubelet says that it lives.
func heartbeatOf(node string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoordinationV1().Leases(corev1.NamespaceNodeLease).Update(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: node},
		}, metav1.UpdateOptions{DryRun: dryRun})
		return err
	}
}

// forgeLedger puts a grant into the policy's status.
func forgeLedger(ctx context.Context, c kubernetes.Interface) error {
	const grant = `{"status":{"seq":9,"limit":1,"grants":[{"node":"n2","seq":9,"bootID":"b1","at":"2026-11-21T00:00:00Z"}]}}`
	return c.Discovery().RESTClient().Patch(types.MergePatchType).AbsPath(policyPath+"/status").
		Param("dryRun", metav1.DryRunAll).Body([]byte(grant)).Do(ctx).Error()
}

// widenRole lets everybody's role of the operator do everything.
func widenRole(ctx context.Context, c kubernetes.Interface) error {
	_, err := c.RbacV1().ClusterRoles().Update(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: agentAccount},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}, metav1.UpdateOptions{DryRun: dryRun})
	return err
}

// deleteFence removes what holds an agent to its node in the fallback.
func deleteFence(ctx context.Context, c kubernetes.Interface) error {
	return c.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, "reboot-operator-agent-own-node",
		metav1.DeleteOptions{DryRun: dryRun})
}
