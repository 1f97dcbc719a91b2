package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A token of the agent must be valid for ten minutes, and only while its pod exists.
var _ = Describe("a token of the agent", constrainedImpersonation, Ordered, ContinueOnFailure, func() {
	var token string
	var own, other *ecdsa.PrivateKey

	BeforeAll(func(ctx SpecContext) {
		token = shipped.tokenOf(ctx, agentAccount, shipped.agents["n1"])
		var err error
		own, err = shipped.env.SigningKey()
		Expect(err).NotTo(HaveOccurred())
		other, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		Expect(err).NotTo(HaveOccurred())
		expectAllowed(ctx, shipped.as(token, "system:node:n1"), getNode("n1"))
	})

	expectNobody := func(ctx SpecContext, token string) {
		GinkgoHelper()
		a := shipped.as(token, "system:node:n1")
		Eventually(func() error { return getNode("n1")(ctx, a) }).Should(Satisfy(apierrors.IsUnauthorized))
		keep(sectionAgent, "as node n1", a)
	}
	change := func(key string, value any) func(object) {
		return func(claims object) { claims[key] = value }
	}
	onNode2 := func(claims object) {
		claims["kubernetes.io"].(object)["node"] = object{"name": "n2", "uid": "2"}
	}

	It("is accepted if it is signed again unchanged, so the cases below fail because of their change", func(ctx SpecContext) {
		Expect(getNode("n1")(ctx, shipped.as(signed(token, own, func(object) {}), "system:node:n1"))).To(Succeed())
	})

	DescribeTable("is refused", func(ctx SpecContext, key func() *ecdsa.PrivateKey, change func(object)) {
		expectNobody(ctx, signed(token, key(), change))
	},
		Entry("a token that has expired", func() *ecdsa.PrivateKey { return own }, change("exp", 1)),
		Entry("a token for another audience", func() *ecdsa.PrivateKey { return own }, change("aud", []string{"vault"})),
		Entry("a token with a longer life, signed by somebody else", func() *ecdsa.PrivateKey { return other }, change("exp", 1<<40)),
		Entry("a token that names another node, signed by somebody else", func() *ecdsa.PrivateKey { return other }, onNode2),
	)

	It("a token whose pod is gone", func(ctx SpecContext) {
		pod := shipped.createAgent(ctx, "n3")
		used, gone := shipped.tokenOf(ctx, agentAccount, pod), shipped.tokenOf(ctx, agentAccount, pod)
		expectAllowed(ctx, shipped.as(used, ""), getPolicy) // the API server caches for ten seconds that it is valid
		Expect(shipped.admin.CoreV1().Pods(namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))).To(Succeed())
		expectNobody(ctx, gone)
	})

	It("a token of a pod that was created again under the same name", func(ctx SpecContext) {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "agent-n1", UID: "another"},
		}}
		_, err := shipped.admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, agentAccount, request, metav1.CreateOptions{})
		Expect(err).To(Satisfy(apierrors.IsConflict))
	})
})

// signed returns the token with changed claims and a valid signature.
func signed(token string, key *ecdsa.PrivateKey, change func(object)) string {
	GinkgoHelper()
	parts := strings.Split(token, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	Expect(err).NotTo(HaveOccurred())
	claims := object{}
	Expect(json.Unmarshal(payload, &claims)).To(Succeed())
	change(claims)
	payload, err = json.Marshal(claims)
	Expect(err).NotTo(HaveOccurred())
	text := parts[0] + "." + base64.RawURLEncoding.EncodeToString(payload)
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	Expect(err).NotTo(HaveOccurred())
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}
