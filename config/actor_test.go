package config_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/reboot-operator/reboot-operator/hack/wire"
)

// actor is the owner of a token who sends requests. It remembers its last request and the answer.
type actor struct {
	kubernetes.Interface
	last *exchange
}

// as returns an actor with a token that impersonates the user, or nobody if user is "".
func (c *cluster) as(token, user string) *actor {
	GinkgoHelper()
	return c.impersonating(token, rest.ImpersonationConfig{UserName: user})
}

func (c *cluster) impersonating(token string, whom rest.ImpersonationConfig) *actor {
	GinkgoHelper()
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken, config.Impersonate = token, whom
	return actorOf(config)
}

// administrator returns an actor with the rights of the cluster administrator.
func (c *cluster) administrator() *actor {
	GinkgoHelper()
	return actorOf(rest.CopyConfig(c.config))
}

// impersonated returns the administrator's config, impersonating a user.
func (c *cluster) impersonated(user string, groups ...string) *rest.Config {
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

func actorOf(config *rest.Config) *actor {
	GinkgoHelper()
	config.QPS = -1
	config.ContentType = runtime.ContentTypeJSON // so that error messages are readable
	last := &exchange{}
	config.Wrap(wire.Func(last.record).Wrap)
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return &actor{Interface: client, last: last}
}

// exchange is a request with its answer.
type exchange struct {
	Request *http.Request
	// Code is the status of the answer. Message explains a refusal.
	Code    int
	Message string
}

// record records the last request of an actor, which sends one at a time.
func (e *exchange) record(request *http.Request, next http.RoundTripper) (*http.Response, error) {
	response, err := next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	*e = exchange{Request: request, Code: response.StatusCode}
	if response.StatusCode < http.StatusBadRequest {
		return response, nil
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil {
		e.Message = status.Message
	}
	return response, err
}

// request describes the request in terms of RBAC: verb, resource.group, name, subresource, selector
// and namespace.
func (e *exchange) request() string {
	info := wire.Info(e.Request)
	resource, where := slices.Clone(info.Parts), ""
	if info.APIGroup != "" {
		resource[0] += "." + info.APIGroup
	}
	if info.Namespace != "" && info.Resource != "namespaces" {
		where = " in " + info.Namespace
	}
	if info.FieldSelector != "" {
		where += " of " + info.FieldSelector
	}
	return info.Verb + " " + strings.Join(resource, "/") + where
}

// by returns who refused the request, according to the message. It is unknown who allowed one.
func (e *exchange) by() string {
	switch {
	case e.Code == http.StatusUnauthorized:
		return "authentication"
	case e.Code == http.StatusConflict:
		return "optimistic concurrency"
	case e.Code == http.StatusUnprocessableEntity:
		return "CRD rule"
	case e.Code < http.StatusBadRequest:
		return ""
	}
	for _, known := range [][2]string{
		{"ValidatingAdmissionPolicy", "admission policy"},
		{"violates PodSecurity", "Pod Security"},
		{"cannot impersonate", "RBAC, on impersonation"},
		{`User "system:node:`, "Node authorizer"},
		{"is not allowed to", "NodeRestriction"},
		{"can only evict pods", "NodeRestriction"},
		{"can only delete pods", "NodeRestriction"},
		{" cannot ", "RBAC"},
	} {
		if strings.Contains(e.Message, known[0]) {
			return known[1]
		}
	}
	return "unknown: " + e.Message
}
