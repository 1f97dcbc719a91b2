package config_test

import (
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// attempt is one request; nothing of it is kept, so that attempts can come in any order.
type attempt func(ctx context.Context, c kubernetes.Interface) error

const policyPath = "/apis/reboot-operator.io/v1alpha1/rebootpolicies/p"

var dryRun = []string{metav1.DryRunAll}

func getNode(name string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return err
	}
}

// listNodes lists the node of the name, or all of them.
func listNodes(name string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{FieldSelector: selector("metadata.name", name)})
		return err
	}
}

func watchNodes(name string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		w, err := c.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: selector("metadata.name", name)})
		if err == nil {
			w.Stop()
		}
		return err
	}
}

// patchNode patches the Node, or its subresource status.
func patchNode(name string, patch object, subresources ...string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		body, err := json.Marshal(patch)
		if err != nil {
			return err
		}
		_, err = c.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, body,
			metav1.PatchOptions{DryRun: dryRun}, subresources...)
		return err
	}
}

func listPods(node string) attempt { return listPodsOf("", node) }

func listPodsOf(namespace, node string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector("spec.nodeName", node)})
		return err
	}
}

func watchPods(node string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		w, err := c.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{FieldSelector: selector("spec.nodeName", node)})
		if err == nil {
			w.Stop()
		}
		return err
	}
}

func evictPodOf(node string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		return c.CoreV1().Pods(namespace).EvictV1(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: "agent-" + node},
			DeleteOptions: &metav1.DeleteOptions{DryRun: dryRun},
		})
	}
}

func deletePodOf(node string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		return c.CoreV1().Pods(namespace).Delete(ctx, "agent-"+node, metav1.DeleteOptions{DryRun: dryRun})
	}
}

func createPod(ctx context.Context, c kubernetes.Interface) error {
	_, err := c.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "made"},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{DryRun: dryRun})
	return err
}

func createEvent(ctx context.Context, c kubernetes.Interface) error {
	return createEventIn(metav1.NamespaceDefault)(ctx, c)
}

func createEventIn(namespace string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.EventsV1().Events(namespace).Create(ctx, &eventsv1.Event{
			ObjectMeta:          metav1.ObjectMeta{Name: "n1.1"},
			Regarding:           corev1.ObjectReference{Kind: "Node", Name: "n1"},
			EventTime:           metav1.MicroTime{Time: time.Unix(1, 0)},
			Type:                corev1.EventTypeNormal,
			Reason:              "Draining",
			Action:              "Drain",
			ReportingController: "reboot-operator.io/agent",
			ReportingInstance:   "n1",
		}, metav1.CreateOptions{DryRun: dryRun})
		return err
	}
}

func createToken(ctx context.Context, c kubernetes.Interface) error {
	_, err := c.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, managerAccount, &authenticationv1.TokenRequest{},
		metav1.CreateOptions{DryRun: dryRun})
	return err
}

func listSecrets(ctx context.Context, c kubernetes.Interface) error {
	return listSecretsOf("")(ctx, c)
}

func listSecretsOf(namespace string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
		return err
	}
}

func listBudgets(ctx context.Context, c kubernetes.Interface) error {
	_, err := c.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{})
	return err
}

func getNamespace(ctx context.Context, c kubernetes.Interface) error {
	_, err := c.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	return err
}

func getPolicy(ctx context.Context, c kubernetes.Interface) error {
	return c.Discovery().RESTClient().Get().AbsPath(policyPath).Do(ctx).Error()
}

func patchPolicy(ctx context.Context, c kubernetes.Interface) error {
	return mergeIntoPolicy(`{"spec":{"mode":"DryRun"}}`)(ctx, c)
}

// mergeIntoPolicy merges a patch into the policy.
func mergeIntoPolicy(patch string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		return c.Discovery().RESTClient().Patch(types.MergePatchType).AbsPath(policyPath).
			Param("dryRun", metav1.DryRunAll).Body([]byte(patch)).Do(ctx).Error()
	}
}

// selector selects the value, or everything where it is "".
func selector(field, value string) string {
	if value == "" {
		return ""
	}
	return field + "=" + value
}

// expectForbidden waits for the API server to have an admission policy that was just made.
func expectForbidden(ctx context.Context, c kubernetes.Interface, try attempt) {
	GinkgoHelper()
	Eventually(ctx, func() error { return try(ctx, c) }).Should(Satisfy(apierrors.IsForbidden))
}

// expectAllowed waits for the API server's own caches: of roles, nodes and pods that were just made.
func expectAllowed(ctx context.Context, c kubernetes.Interface, try attempt) {
	GinkgoHelper()
	Eventually(ctx, func() error { return try(ctx, c) }).Should(Succeed())
}
