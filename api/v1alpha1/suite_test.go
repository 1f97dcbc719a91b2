package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// admin is an administrator's client of the suite's API server.
var admin client.Client

func TestValidation(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "RebootPolicy at the API server")
}

var _ = BeforeSuite(func() {
	var err error
	admin, err = testenv.NewClient(embedded.StartServerFor(GinkgoT()).Config())
	Expect(err).NotTo(HaveOccurred())
})
