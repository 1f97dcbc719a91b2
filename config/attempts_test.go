package config_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// attempt sends one request, which changes nothing, so that attempts can run in any order.
type attempt func(ctx context.Context, c kubernetes.Interface) error

// The paths of requests.
const (
	nodes        = "/api/v1/nodes"
	policies     = "/apis/reboot-operator.io/v1alpha1/rebootpolicies"
	policyPath   = policies + "/p"
	pods         = "/api/v1/pods"
	ownNamespace = "/api/v1/namespaces/" + namespace
	ownPods      = ownNamespace + "/pods"
	rbac         = "/apis/rbac.authorization.k8s.io/v1"
	clusterRoles = rbac + "/clusterroles"
	// dry makes a write a dry run.
	dry = "?dryRun=" + metav1.DryRunAll
)

// dryRun is the same for typed clients.
var dryRun = []string{metav1.DryRunAll}

// send returns an attempt that ends with the beginning of the answer, even for a watch. kind is the
// content type of the body.
func send(method, uri string, kind types.PatchType, body any) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		request := c.Discovery().RESTClient().Verb(method).RequestURI(uri)
		if body != nil {
			text, err := json.Marshal(body)
			if err != nil {
				return err
			}
			request.SetHeader("Content-Type", string(kind)).Body(text)
		}
		answer, err := request.Stream(ctx)
		if err == nil {
			err = answer.Close()
		}
		return err
	}
}

func get(uri string) attempt    { return send(http.MethodGet, uri, "", nil) }
func remove(uri string) attempt { return send(http.MethodDelete, uri, "", nil) }

func post(uri string, body any) attempt {
	return send(http.MethodPost, uri, "application/json", body)
}

func put(uri string, body any) attempt {
	return send(http.MethodPut, uri, "application/json", body)
}

func merge(uri string, body any) attempt {
	return send(http.MethodPatch, uri, types.MergePatchType, body)
}

func getNode(name string) attempt { return get(nodes + "/" + name) }

// listNodes lists the named node, or all nodes.
func listNodes(name string) attempt { return get(nodes + "?" + selector("metadata.name", name)) }

func watchNodes(name string) attempt {
	return get(nodes + "?watch=1&" + selector("metadata.name", name))
}

// patchNode patches the Node or its status.
func patchNode(name string, patch object, subresources ...string) attempt {
	uri := path.Join(append([]string{nodes, name}, subresources...)...)
	return send(http.MethodPatch, uri+dry, types.StrategicMergePatchType, patch)
}

func listPods(node string) attempt { return get(pods + "?" + selector("spec.nodeName", node)) }

func watchPods(node string) attempt {
	return get(pods + "?watch=1&" + selector("spec.nodeName", node))
}

func evictPodOf(node string) attempt {
	return post(ownPods+"/agent-"+node+"/eviction", object{
		"apiVersion": "policy/v1", "kind": "Eviction", "metadata": object{"name": "agent-" + node}, "deleteOptions": object{"dryRun": dryRun},
	})
}

func deletePodOf(node string) attempt { return remove(ownPods + "/agent-" + node + dry) }

func createEventIn(namespace string) attempt {
	return post("/apis/events.k8s.io/v1/namespaces/"+namespace+"/events"+dry, object{
		"metadata": object{"name": "n1.1"}, "regarding": object{"kind": "Node", "name": "n1"}, "eventTime": "2026-11-21T00:00:00.000000Z",
		"type": "Normal", "reason": "Draining", "action": "Drain",
		"reportingController": "reboot-operator.io/agent", "reportingInstance": "n1",
	})
}

func listSecretsOf(namespace string) attempt {
	return get("/api/v1/namespaces/" + namespace + "/secrets")
}

var (
	createEvent = createEventIn(metav1.NamespaceDefault)
	createPod   = post(ownPods+dry, object{"metadata": object{"name": "made"}, "spec": object{
		"nodeName": "n1", "containers": []object{{"name": "c", "image": "i"}},
	}})
	createToken  = post(ownNamespace+"/serviceaccounts/"+managerAccount+"/token"+dry, object{})
	listSecrets  = get("/api/v1/secrets")
	listBudgets  = get("/apis/policy/v1/poddisruptionbudgets")
	getNamespace = get(ownNamespace)
	getPolicy    = get(policyPath)
	patchPolicy  = mergeIntoPolicy(`{"spec":{"mode":"DryRun"}}`)
)

// mergeIntoPolicy merges a patch into the policy.
func mergeIntoPolicy(patch string) attempt { return merge(policyPath+dry, json.RawMessage(patch)) }

// selector returns a field selector, or "" if the value is empty.
func selector(field, value string) string {
	if value == "" {
		return ""
	}
	return url.Values{"fieldSelector": {field + "=" + value}}.Encode()
}

// expectForbidden waits until the API server enforces a new admission policy.
func expectForbidden(ctx context.Context, c kubernetes.Interface, try attempt) {
	GinkgoHelper()
	Eventually(func() error { return try(ctx, c) }).Should(Satisfy(apierrors.IsForbidden))
}

// expectAllowed waits until the API server's caches have new roles, nodes and pods.
func expectAllowed(ctx context.Context, c kubernetes.Interface, try attempt) {
	GinkgoHelper()
	Eventually(func() error { return try(ctx, c) }).Should(Succeed())
}
