package slots

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/ledger"
	"github.com/reboot-operator/reboot-operator/controllers/plan/queue"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// Limit returns maxUnavailable in nodes. A percentage of the selected nodes rounds down, to at
// least 1 and at most MaxGrants. 0, 0% and unreadable values allow none.
func Limit(maxUnavailable intstr.IntOrString, selected int) (int32, error) {
	if maxUnavailable.Type == intstr.Int {
		return max(maxUnavailable.IntVal, 0), nil
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(maxUnavailable.StrVal, "%"))
	if err != nil || !strings.HasSuffix(maxUnavailable.StrVal, "%") || percent < 0 || percent > 100 {
		return 0, fmt.Errorf("%q is not a percentage", maxUnavailable.StrVal)
	}
	if percent == 0 || selected == 0 {
		return 0, nil
	}
	return int32(min(max(selected*percent/100, 1), v1alpha1.MaxGrants)), nil
}

// Limits are the limits of a policy in nodes.
type Limits struct {
	// Ledger is maxUnavailable of the policy whose limit counts. Own is this policy's own
	// maxUnavailable if it has one besides the shared limit, or nil.
	Ledger int32
	Own    *int32
	// Of is the name of the policy whose maxUnavailable is the smallest that counts.
	Of string
	// First is concurrency.firstBatch, or 0 if the policy has none.
	First int32
	// Rings holds the limits of the rings that have one, by the ring's number.
	Rings map[int]int32
}

// LimitsOf returns the limits of a policy, given its ledger, its rings and the sorted nodes.
func LimitsOf(policy *v1alpha1.RebootPolicy, l ledger.Ledger, rings queue.Rings, nodes governor.Sorted) (Limits, error) {
	limits, others := Limits{Of: l.Policy.Name, Rings: map[int]int32{}}, 0
	for _, n := range nodes.Sharing {
		if n.Governed {
			others++
		}
	}
	invalid := limits.scale(policy, l, len(nodes.Governed), others)
	first := limits.scaleFirst(policy, len(nodes.Governed))
	return limits, cmp.Or(limits.scaleRings(rings, nodes.Governed), first, invalid)
}

// scale computes the limits of the ledger and of the policy itself.
func (l *Limits) scale(policy *v1alpha1.RebootPolicy, of ledger.Ledger, selected, others int) (err error) {
	most := of.Policy.Spec.MaxUnavailableOrDefault()
	if of.Moved {
		most, others, l.Of = policy.Spec.MaxUnavailableOrDefault(), 0, policy.Name
	}
	if l.Ledger, err = Limit(most, selected+others); err == nil && !of.Moved {
		if own := policy.Spec.OwnLimit(); own != nil {
			l.Own = new(int32)
			*l.Own, err = Limit(*own, selected)
		}
	}
	if l.Own != nil && *l.Own <= l.Ledger {
		l.Of = policy.Name
	}
	if err != nil {
		return fmt.Errorf("spec.concurrency.maxUnavailable: %w", err)
	}
	return nil
}

// scaleFirst computes concurrency.firstBatch.
func (l *Limits) scaleFirst(policy *v1alpha1.RebootPolicy, selected int) (err error) {
	if first := policy.Spec.FirstBatch(); first != nil {
		if l.First, err = Limit(first.NodesOrDefault(), selected); err != nil {
			return fmt.Errorf("spec.concurrency.firstBatch.nodes: %w", err)
		}
	}
	return nil
}

// scaleRings computes maxUnavailable of each ring.
func (l *Limits) scaleRings(rings queue.Rings, selected []*record.Node) (err error) {
	members := rings.Count(selected)
	for i, ring := range rings.Order {
		if ring.MaxUnavailable == nil {
			continue
		}
		if l.Rings[i], err = Limit(*ring.MaxUnavailable, members[i]); err != nil {
			delete(l.Rings, i)
			return fmt.Errorf("spec.rings, maxUnavailable of ring %s: %w", ring.Name, err)
		}
	}
	return nil
}

// Least returns the smallest limit of the policy as a whole.
func (l Limits) Least() int32 {
	if l.Own != nil {
		return min(l.Ledger, *l.Own)
	}
	return l.Ledger
}
