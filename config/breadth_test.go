package config_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/reboot-operator/reboot-operator/hack/document"
)

// request is one verb on one resource in one place.
type request struct{ method, path, body string }

// tryEverything sends every verb of every resource and subresource of the API server: in the
// operator's namespace, in kube-system, and by name on both nodes and the agents' pods. It returns
// the number of requests, the number of answers 401 and 403, and the requests that authorization
// let through, even if they failed later.
func tryEverything(ctx context.Context, c *cluster, a *actor) (tried, refused int, through []string) {
	GinkgoHelper()
	_, resources, err := c.admin.Discovery().ServerGroupsAndResources()
	Expect(err).To(Or(BeNil(), Satisfy(discovery.IsGroupDiscoveryFailedError)))
	known := map[string]bool{}
	for _, list := range resources {
		for i := range list.APIResources {
			for _, r := range requestsOf(list.GroupVersion, &list.APIResources[i]) {
				tried++
				if isLetThrough(ctx, c, a, r) {
					known[a.last.request()] = true
					continue
				}
				refused++
			}
		}
	}
	return tried, refused, slices.Sorted(maps.Keys(known))
}

func isLetThrough(ctx context.Context, c *cluster, a *actor, r request) bool {
	GinkgoHelper()
	if r.method == http.MethodPut { // puts the existing object again, so that missing fields are not the reason of a refusal
		if current, err := c.admin.Discovery().RESTClient().Get().RequestURI(r.path).DoRaw(ctx); err == nil {
			r.body = string(current)
		}
	}
	*a.last = exchange{}
	call := a.Discovery().RESTClient().Verb(r.method).RequestURI(r.path)
	switch r.method {
	case http.MethodPatch:
		call.SetHeader("Content-Type", "application/merge-patch+json").Body([]byte(r.body))
	case http.MethodPost, http.MethodPut:
		call.SetHeader("Content-Type", "application/json").Body([]byte(r.body))
	}
	if answer, err := call.Stream(ctx); err == nil { // a watch ends with the beginning of its answer
		_ = answer.Close()
	}
	Expect(a.last.Code).NotTo(BeZero(), "%s %s", r.method, r.path)
	return a.last.Code != http.StatusUnauthorized && a.last.Code != http.StatusForbidden
}

// requestsOf returns requests for a resource, with all its verbs in all possible places.
func requestsOf(groupVersion string, resource *metav1.APIResource) []request {
	name, subresource, _ := strings.Cut(resource.Name, "/")
	prefix := "/apis/" + groupVersion
	if !strings.Contains(groupVersion, "/") {
		prefix = "/api/" + groupVersion
	}
	folders, names := []string{path.Join(prefix, name)}, []string{"x"}
	switch {
	case resource.Namespaced && name == "pods":
		folders, names = []string{path.Join(prefix, "namespaces", namespace, name)}, []string{"agent-n1", "agent-n2"}
	case resource.Namespaced:
		folders = []string{path.Join(prefix, "namespaces", namespace, name), path.Join(prefix, "namespaces", metav1.NamespaceSystem, name)}
	case name == "nodes":
		names = []string{"n1", "n2"}
	}
	var requests []request
	for _, verb := range resource.Verbs {
		for _, folder := range folders {
			for _, object := range names {
				r := requestFor(verb, folder, object, subresource, kindOf(groupVersion, resource))
				if !slices.Contains(requests, r) { // a list has no name
					requests = append(requests, r)
				}
			}
		}
	}
	return requests
}

func kindOf(groupVersion string, resource *metav1.APIResource) string {
	if resource.Group != "" || resource.Version != "" { // a subresource of another kind, such as an Eviction
		groupVersion = strings.TrimPrefix(resource.Group+"/"+resource.Version, "/")
	}
	return fmt.Sprintf(`"apiVersion":%q,"kind":%q`, groupVersion, resource.Kind)
}

func requestFor(verb, folder, name, subresource, kind string) request {
	object := path.Join(folder, name, subresource)
	body := fmt.Sprintf(`{%s,"metadata":{"name":%q}}`, kind, name)
	dry := "?dryRun=" + metav1.DryRunAll
	switch verb {
	case "get":
		return request{http.MethodGet, object, ""}
	case "list":
		return request{http.MethodGet, folder + "?limit=1", ""}
	case "watch":
		return request{http.MethodGet, folder + "?watch=1&timeoutSeconds=1", ""}
	case "create":
		if subresource == "" {
			object = folder
		}
		return request{http.MethodPost, object + dry, body}
	case "update":
		return request{http.MethodPut, object + dry, body}
	case "patch":
		return request{http.MethodPatch, object + dry, "{}"}
	case "delete":
		return request{http.MethodDelete, object + dry, ""}
	case "deletecollection":
		return request{http.MethodDelete, folder + dry, ""}
	}
	Fail("an unknown verb: " + verb)
	return request{}
}

// withoutOperator holds everything that a ServiceAccount without a binding may do on this version
// of Kubernetes. It is measured before the operator is installed.
var withoutOperator struct {
	tried, refused int
	through        []string
}

// tryWithoutOperator fills withoutOperator on a cluster that only has the operator's namespace.
func tryWithoutOperator(ctx context.Context, c *cluster) {
	GinkgoHelper()
	unbound := c.as(c.tokenOfOther(ctx, "unbound"), "")
	w := &withoutOperator
	w.tried, w.refused, w.through = tryEverything(ctx, c, unbound)
	Expect(w.tried).To(BeNumerically(">", 500))
}

// keepEverything tries everything, and adds to the report what was let through in addition to
// withoutOperator. None of it may match never.
func keepEverything(ctx context.Context, c *cluster, section, who string, a *actor, never string) {
	GinkgoHelper()
	tried, refused, through := tryEverything(ctx, c, a)
	Expect(tried).To(BeNumerically(">=", withoutOperator.tried))
	through = slices.DeleteFunc(through, func(r string) bool { return slices.Contains(withoutOperator.through, r) })
	Expect(through).NotTo(ContainElement(MatchRegexp(never)))
	keepBreadth(section, who, tried, refused, through)
}

func keepBreadth(section, who string, tried, refused int, through []string) {
	GinkgoHelper()
	row := document.Row(who, fmt.Sprintf("%d requests, %d refused", tried, refused), cmp.Or(summary(through), "nothing"))
	AddReportEntry(entryBreadth, kept{section, row, tried, refused}, ReportEntryVisibilityNever)
}

// summary groups requests by object, with all their verbs.
func summary(requests []string) string {
	verbs := map[string][]string{}
	for _, r := range requests {
		verb, object, _ := strings.Cut(r, " ")
		verbs[object] = append(verbs[object], verb)
	}
	var all []string
	for _, object := range slices.Sorted(maps.Keys(verbs)) {
		all = append(all, "`"+strings.Join(verbs[object], ", ")+" "+object+"`")
	}
	return strings.Join(all, "<br>")
}

// Permissions with which somebody could take over the cluster.
const mighty = `secrets|serviceaccounts|/(exec|attach|portforward|proxy|ephemeralcontainers|binding)|rbac\.authorization|certificates|admissionregistration|^(create|update|patch|delete) pods in`
