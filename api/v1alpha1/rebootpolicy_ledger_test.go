package v1alpha1_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// The API server itself protects the ledger from a stale or broken manager. Each case starts from a
// policy with the given limit in spec and status, highest sequence number 10, and grants with the
// given numbers.
var _ = Describe("status, the ledger", func() {
	type status = v1alpha1.RebootPolicyStatus

	grants := func(seqs ...int64) []v1alpha1.LedgerEntry {
		var entries []v1alpha1.LedgerEntry
		for _, seq := range seqs {
			entries = append(entries, v1alpha1.LedgerEntry{Node: "n" + string(rune('0'+seq%10)), Seq: seq, BootID: "b", At: metav1.Now()})
		}
		return entries
	}

	// given creates the policy. Like a manager that adopts grants, it writes limit and number first.
	given := func(ctx context.Context, limit intstr.IntOrString, nodes int32, seqs ...int64) *v1alpha1.RebootPolicy {
		GinkgoHelper()
		policy := &v1alpha1.RebootPolicy{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "ledger-"},
			Spec:       v1alpha1.RebootPolicySpec{Concurrency: &v1alpha1.Concurrency{MaxUnavailable: &limit}},
		}
		Expect(admin.Create(ctx, policy)).To(Succeed())
		DeferCleanup(func(ctx context.Context) error { return admin.Delete(ctx, policy) })
		policy.Status.Limit, policy.Status.Seq = nodes, 10
		Expect(admin.Status().Update(ctx, policy)).To(Succeed())
		policy.Status.Grants = grants(seqs...)
		Expect(admin.Status().Update(ctx, policy)).To(Succeed())
		return policy
	}

	DescribeTable("accepts", func(ctx SpecContext, limit string, nodes int32, seqs []int64, change func(*status)) {
		policy := given(ctx, intstr.Parse(limit), nodes, seqs...)
		change(&policy.Status)
		Expect(admin.Status().Update(ctx, policy)).To(Succeed())
	},
		Entry("a grant below the limit", "2", int32(2), []int64{9}, func(s *status) {
			s.Grants, s.Seq = grants(9, 11), 11
		}),
		Entry("a grant and a release at the limit in one write", "1", int32(1), []int64{9}, func(s *status) {
			s.Grants, s.Seq = grants(11), 11
		}),
		Entry("a release", "1", int32(1), []int64{9}, func(s *status) { s.Grants = nil }),
		Entry("a limit below the running grants", "2", int32(2), []int64{8, 9}, func(s *status) { s.Limit = 1 }),
		Entry("a release while still above a lowered limit", "3", int32(1), []int64{7, 8, 9}, func(s *status) { s.Grants = grants(7, 8) }),
		Entry("a raise up to the spec", "3", int32(1), nil, func(s *status) { s.Limit = 3 }),
		Entry("any limit under a percentage", "50%", int32(1), nil, func(s *status) { s.Limit = 40 }),
		Entry("other changes while the ledger stays the same", "1", int32(1), []int64{9}, func(s *status) {
			s.ObservedGeneration, s.Mode = 1, v1alpha1.ModeEnforce
		}),
		// Adoption takes two writes: first the highest number seen on a Node, and then the grants,
		// which are no longer new.
		Entry("the number of a grant found on a node", "1", int32(1), nil, func(s *status) { s.Seq = 42 }),
		Entry("more grants than the limit, all of them known by number", "1", int32(1), nil, func(s *status) { s.Grants = grants(8, 9) }),
	)

	DescribeTable("refuses", func(ctx SpecContext, limit string, nodes int32, seqs []int64, change func(*status), sentence string) {
		policy := given(ctx, intstr.Parse(limit), nodes, seqs...)
		change(&policy.Status)
		err := admin.Status().Update(ctx, policy)
		Expect(err).To(And(Satisfy(apierrors.IsInvalid), MatchError(ContainSubstring(sentence))))
	},
		Entry("a grant over the limit", "1", int32(1), []int64{9}, func(s *status) {
			s.Grants, s.Seq = grants(9, 11), 11
		}, "status.grants has as many entries as status.limit allows"),
		Entry("a grant under limit 0", "0", int32(0), nil, func(s *status) {
			s.Grants, s.Seq = grants(11), 11
		}, "status.grants has as many entries as status.limit allows"),
		Entry("one release and one grant while above a lowered limit", "3", int32(1), []int64{7, 8, 9}, func(s *status) {
			s.Grants, s.Seq = grants(7, 8, 11), 11
		}, "status.grants has as many entries as status.limit allows"),
		Entry("a grant whose number the ledger does not cover", "2", int32(2), nil, func(s *status) {
			s.Grants = grants(11)
		}, "status.seq must be at least the seq of every grant"),
		Entry("a number that decreases", "1", int32(1), nil, func(s *status) { s.Seq = 9 }, "status.seq must not decrease"),
		Entry("a status that was emptied", "1", int32(1), []int64{9}, func(s *status) { *s = status{} }, "status.seq must not decrease"),
		Entry("a limit above the spec", "2", int32(2), nil, func(s *status) { s.Limit = 3 },
			"status.limit must not be more than spec.concurrency.maxUnavailable"),
		Entry("limit and grant above the spec at once", "1", int32(1), []int64{9}, func(s *status) {
			s.Limit, s.Grants, s.Seq = 2, grants(9, 11), 11
		}, "status.limit must not be more than spec.concurrency.maxUnavailable"),
		Entry("a node twice", "2", int32(2), nil, func(s *status) {
			s.Grants, s.Seq = append(grants(11), grants(11)...), 11
		}, "Duplicate value"),
		Entry("a number that no grant can have", "1", int32(1), nil, func(s *status) { s.Grants = grants(0) },
			"grants[0].seq: Invalid value: 0: grants[0].seq in body should be greater than or equal to 1"),
		Entry("a negative limit", "1", int32(1), nil, func(s *status) { s.Limit = -1 }, "should be greater than or equal to 0"),
	)

	It("refuses a limit above 1 if the spec sets none", func(ctx SpecContext) {
		policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{GenerateName: "ledger-"}}
		Expect(admin.Create(ctx, policy)).To(Succeed())
		DeferCleanup(func(ctx context.Context) error { return admin.Delete(ctx, policy) })
		policy.Status.Limit = 2
		Expect(admin.Status().Update(ctx, policy)).To(MatchError(ContainSubstring("status.limit must not be more than")))
		policy.Status.Limit = 1
		Expect(admin.Status().Update(ctx, policy)).To(Succeed())
	})

	It("lets the user lower maxUnavailable below the limit in force", func(ctx SpecContext) {
		policy := given(ctx, intstr.FromInt32(3), 3, 7, 8, 9)
		policy.Spec.Concurrency.MaxUnavailable = new(intstr.FromInt32(1))
		Expect(admin.Update(ctx, policy)).To(Succeed())
		By("releasing one while the limit has not followed yet")
		policy.Status.Grants = grants(7, 8)
		Expect(admin.Status().Update(ctx, policy)).To(Succeed())
		By("following")
		policy.Status.Limit = 1
		Expect(admin.Status().Update(ctx, policy)).To(Succeed())
	})

	It("refuses the second of two managers that read the same ledger", func(ctx SpecContext) {
		policy := given(ctx, intstr.FromInt32(1), 1)
		stale := policy.DeepCopy()
		policy.Status.Grants, policy.Status.Seq = grants(11), 11
		Expect(admin.Status().Update(ctx, policy)).To(Succeed())
		stale.Status.Grants, stale.Status.Seq = grants(12), 12
		Expect(admin.Status().Update(ctx, stale)).To(Satisfy(apierrors.IsConflict))
	})

	It("keeps the ledger out of reach of whoever edits the policy", func(ctx SpecContext) {
		policy := given(ctx, intstr.FromInt32(1), 1, 9)
		policy.Status = status{}
		Expect(admin.Update(ctx, policy)).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(policy), policy)).To(Succeed())
		Expect(policy.Status.Seq).To(Equal(int64(10)))
		Expect(policy.Status.Grants).To(HaveLen(1))
	})
})
