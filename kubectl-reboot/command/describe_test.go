package command_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/agents"
	"github.com/reboot-operator/reboot-operator/hack/fleettest"
)

// remembers fills the policy's history with reboots that changed the version and the kernel.
func (p *pool) remembers() {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		policy := p.get()
		policy.Status.History = nil
		for i := range v1alpha1.MaxHistory {
			ended := metav1.NewTime(time.Now().Add(time.Duration(i)*time.Minute - time.Hour))
			took := &metav1.Duration{Duration: time.Minute}
			policy.Status.History = append(policy.Status.History, v1alpha1.PastReboot{
				Node: p.nodes[i%len(p.nodes)], Seq: int64(i + 1), Result: v1alpha1.RebootSucceeded, Reason: v1alpha1.ReasonUpdateStaged,
				FromVersion: "4459.2.0", ToVersion: "4459.2.1", FromKernel: "6.12.51-flatcar", ToKernel: "6.12.54-flatcar",
				GrantedAt: metav1.NewTime(ended.Add(-3 * time.Minute)), EndedAt: ended, Drain: took, Reboot: took, Settle: took,
			})
		}
		policy.Status.Seq = v1alpha1.MaxHistory
		return api.Status().Update(context.Background(), policy)
	})).To(Succeed())
}

var _ = Describe("kubectl describe rebootpolicy", func() {
	It("begins its status with why nodes wait and which condition needs a person", func() {
		two := int32(2)
		p := newPool(8, fleettest.Spec(func(s *v1alpha1.RebootPolicySpec) { s.MaxFailures = &two }), paused)
		p.remembers()
		Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
			policy := p.get()
			policy.Spec.Pause = nil
			return api.Update(context.Background(), policy)
		})).To(Succeed())
		for _, name := range p.nodes[:2] {
			p.needs(name)
			expectPermitted(name, "True Granted")
			p.starts(name)
			p.plays(name, agents.Abort(v1alpha1.ReasonDrainTimedOut, "pod shop/db-0 is still there", time.Now()))
		}
		p.annotates(p.nodes[2], v1alpha1.AnnotationPaused, "INC-4711")
		for _, name := range p.nodes[2:] {
			p.needs(name)
		}
		Eventually(func() int32 { return p.get().Status.Nodes.Blocked }).Should(Equal(int32(8)))

		text := kubectl("", "describe", "rebootpolicy", p.policy)
		_, status, _ := strings.Cut(text, "\nStatus:\n")
		Expect(status).To(MatchRegexp(`^  Blocked:\n(    .*\n)+  Conditions:\n(    .*\n){5}    Type: +Halted\n`))
		Expect(strings.Count(text, "Settle: ")).To(BeNumerically(">=", v1alpha1.MaxHistory-2), "the history is full")
		Expect(strings.Count(text, "\n")).To(BeNumerically("<=", 210))
	})
})
