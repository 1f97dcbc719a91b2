package controllers_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// sharing makes only the limit of another policy count.
func sharing(p *v1alpha1.RebootPolicy) func(*v1alpha1.RebootPolicySpec) {
	return func(s *v1alpha1.RebootPolicySpec) { s.Concurrency = &v1alpha1.Concurrency{Shared: p.Name} }
}

var _ = Describe("Two policies that share a limit", func() {
	It("reboot one node at a time between them, in one ledger", func() {
		cpus, gpus := makeFleet(2), makeFleet(2)
		workers := cpus.policy("workers")
		gpu := gpus.policy("gpu", sharing(workers))
		cpus.need(cpus.nodes...)
		gpus.need(gpus.nodes...)
		all := slices.Concat(cpus.nodes, gpus.nodes)
		granted := func() []string { return append(cpus.granted(), gpus.granted()...) }
		fleetOf := func(name string) *fleet {
			if slices.Contains(cpus.nodes, name) {
				return cpus
			}
			return gpus
		}
		for len(all) > 0 {
			Eventually(granted).Should(HaveLen(1))
			name := granted()[0]
			all = slices.DeleteFunc(all, func(node string) bool { return node == name })
			for _, other := range all {
				Eventually(fleetOf(other).reason).WithArguments(other).Should(Equal("False BudgetExhausted"))
			}
			Expect(granted()).To(ConsistOf(name))
			Expect(policyStatus(gpu).Grants).To(BeEmpty())
			entries := policyStatus(workers).Grants
			Expect(entries).To(HaveLen(1))
			grant := fleetOf(name).grant(name)
			Expect(grant.LedgerName()).To(Equal(workers.Name))
			if fleetOf(name) == gpus {
				Expect([]string{entries[0].Policy, grant.Policy}).To(HaveEach(gpu.Name))
			} else {
				Expect([]string{entries[0].Policy, grant.Ledger}).To(HaveEach(""))
			}
			fleetOf(name).reboot(name)
			Eventually(func() protocol.GrantState { return fleetOf(name).grant(name).State }).Should(Equal(protocol.GrantFinished))
		}
		history := func(p *v1alpha1.RebootPolicy) (nodes []string) {
			for _, past := range policyStatus(p).History {
				nodes = append(nodes, past.Node)
			}
			return nodes
		}
		Eventually(history).WithArguments(gpu).Should(ConsistOf(gpus.nodes))
		Eventually(history).WithArguments(workers).Should(ConsistOf(cpus.nodes))
		Eventually(policyStatus).WithArguments(workers).Should(HaveField("Grants", BeEmpty()))
		Eventually(func() *v1alpha1.RunStatus { return policyStatus(gpu).Run }).Should(BeNil())
	})

	It("keep the policy with the ledger until the nodes of the other policy are back", func(ctx SpecContext) {
		cpus, gpus := makeFleet(1), makeFleet(1)
		workers := cpus.policy("workers", func(s *v1alpha1.RebootPolicySpec) { s.Mode = v1alpha1.ModeDryRun })
		gpu := gpus.policy("gpu", sharing(workers))
		gpus.need(gpus.nodes...)
		Eventually(gpus.granted).Should(HaveLen(1))
		gpus.start(gpus.nodes[0])
		gpus.commit(gpus.nodes[0])
		last := lastOf(ctx, workers)
		Expect(api.Delete(ctx, workers)).To(Succeed())
		Eventually(acceptedReason).WithArguments(gpu).Should(Equal("SharedPolicyNotFound"), "the manager has seen that it is being deleted")
		Expect(policyStatus(workers).Grants).To(HaveLen(1))
		gpus.boot(gpus.nodes[0], 2)
		gpus.finishes(gpus.nodes[0])
		Eventually(func() []v1alpha1.PastReboot { return policyStatus(gpu).History }).Should(HaveLen(1))
		var gone *v1alpha1.RebootPolicy
		Eventually(last).Should(Receive(&gone))
		Expect(gone.Status.Grants).To(BeEmpty(), "it goes once its ledger is empty")
	})

	It("let the policy that shares be deleted while a node of the other one is being rebooted", func(ctx SpecContext) {
		cpus, gpus := makeFleet(1), makeFleet(1)
		workers := cpus.policy("workers")
		gpu := gpus.policy("gpu", sharing(workers))
		cpus.need(cpus.nodes...)
		Eventually(cpus.granted).Should(HaveLen(1))
		gpus.need(gpus.nodes...)
		Eventually(gpus.reason).WithArguments(gpus.nodes[0]).Should(Equal("False BudgetExhausted"))
		last := lastOf(ctx, gpu)
		Expect(api.Delete(ctx, gpu)).To(Succeed())
		Eventually(last).Should(Receive())
		Expect(policyStatus(workers).Grants).To(HaveLen(1))
	})
})

// lastOf receives the last revision of a policy that is deleted.
func lastOf(ctx context.Context, p *v1alpha1.RebootPolicy) <-chan *v1alpha1.RebootPolicy {
	watching, err := client.NewWithWatch(env.Config(), client.Options{Scheme: api.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	events, err := watching.Watch(ctx, &v1alpha1.RebootPolicyList{}, client.MatchingFields{"metadata.name": p.Name})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(events.Stop)
	last := make(chan *v1alpha1.RebootPolicy, 1)
	go func() {
		for event := range events.ResultChan() {
			if policy, ok := event.Object.(*v1alpha1.RebootPolicy); ok && event.Type == watch.Deleted {
				last <- policy
				return
			}
		}
	}()
	return last
}
