package controllers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = It("A reboot that nobody granted is in the history of the policy, once", func() {
	f := makeFleet(1)
	name := f.nodes[0]
	p := f.policy("workers")
	t := metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Second))
	f.annotate(name, v1alpha1.AnnotationEngines, protocol.Engines{
		BootID: f.get(name).Status.NodeInfo.BootID, Unexpected: &protocol.UnexpectedReboot{At: t, FromVersion: "1.0", ToVersion: "2.0"},
	}.String())
	Eventually(func() []v1alpha1.PastReboot { return policyStatus(p).History }).Should(HaveExactElements(And(
		HaveField("Node", name), HaveField("Result", v1alpha1.RebootUnexpected), HaveField("FromVersion", "1.0"), HaveField("ToVersion", "2.0"),
		HaveField("EndedAt.Time", BeTemporally("==", t.Time)))))

	f.need(name)
	f.reboot(f.next())
	f.finishes(name)
	Eventually(func() []v1alpha1.PastReboot { return policyStatus(p).History }).Should(HaveExactElements(
		HaveField("Result", v1alpha1.RebootUnexpected), HaveField("Result", v1alpha1.RebootSucceeded)))
})
