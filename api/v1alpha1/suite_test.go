package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// admin talks to the real API server of the suite.
var admin client.Client

func TestValidation(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "RebootPolicy at the API server")
}

var _ = BeforeSuite(func() {
	env, err := testenv.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	admin, err = client.New(env.Config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
})
