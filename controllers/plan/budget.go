package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Limit is maxUnavailable in nodes. A percentage of the selected nodes rounds down, to at least 1; 0 and 0% allow none.
// What cannot be read allows none either.
func Limit(maxUnavailable intstr.IntOrString, selected int) (int32, error) {
	if maxUnavailable.Type == intstr.Int {
		return max(maxUnavailable.IntVal, 0), nil
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(maxUnavailable.StrVal, "%"))
	if err != nil || !strings.HasSuffix(maxUnavailable.StrVal, "%") || percent < 0 || percent > 100 {
		return 0, fmt.Errorf("spec.concurrency.maxUnavailable: %q is no percentage", maxUnavailable.StrVal)
	}
	if percent == 0 || selected == 0 {
		return 0, nil
	}
	return int32(min(max(selected*percent/100, 1), v1alpha1.MaxGrants)), nil
}

// holdsGrant is why a node uses the budget that is being rebooted, by whichever policy.
const holdsGrant = "holds a grant"

// budget is how many nodes may still go down.
type budget struct {
	limit int
	// full says that every place is taken. It names no node: who holds the places changes with every reboot, and the message
	// would with it, on every waiting node. The policy's status names them.
	full string
	// used are the nodes that are down or going down: in the ledger, adopted, or unavailable for reasons of their own.
	used map[string]string
	// granted is how many entries the ledger has.
	granted int
	// domains are those in which nodes are being rebooted.
	domains map[string]bool
}

func (f *fleet) budget(limit int32, flights []Flight) *budget {
	asked := f.Policy.Spec.MaxUnavailableOrDefault()
	b := &budget{
		limit: int(limit), used: map[string]string{}, domains: map[string]bool{},
		full: fmt.Sprintf("waiting for its turn: at most %s of the nodes may be unavailable at once", asked.String()),
	}
	for _, n := range f.governed {
		if n.Outstanding() {
			b.used[n.Name] = holdsGrant
		} else if n.unavailable() {
			b.used[n.Name] = why(n)
		}
	}
	for _, t := range flights {
		if t.Action != ReleaseEntry {
			b.granted++
			b.used[t.Entry.Node] = holdsGrant
		}
	}
	for _, n := range f.orphans {
		b.granted++
		b.used[n.Name] = holdsGrant
	}
	dead := lost(flights)
	for name, why := range b.used {
		if why == holdsGrant && !dead[name] {
			b.domains[f.domain(f.byName[name])] = true
		}
	}
	return b
}

// takeSlot holds the node from then on.
func (f *fleet) takeSlot(n *Node) {
	f.inEntry[n.Name] = true
	f.places.granted++
	f.places.used[n.Name], f.places.domains[f.domain(n)] = holdsGrant, true
}

// budgetExhausted keeps reboots within maxUnavailable. A node that is down already takes no new place.
func budgetExhausted(f *fleet, n *Node) *Objection {
	b := f.places
	if b.granted >= b.limit || b.granted >= v1alpha1.MaxGrants {
		return b.exhausted()
	}
	if _, counted := b.used[n.Name]; !counted && len(b.used) >= b.limit {
		return b.exhausted()
	}
	return nil
}

func (b *budget) exhausted() *Objection {
	if b.limit == 0 {
		return objection(v1alpha1.ReasonBudgetExhausted, "maxUnavailable is 0: no node may be rebooted")
	}
	return &Objection{Reason: v1alpha1.ReasonBudgetExhausted, Message: b.full}
}

// holders says who uses the budget, for the policy's conditions.
func (b *budget) holders() string {
	names := make([]string, 0, len(b.used))
	for name, why := range b.used {
		names = append(names, name+" ("+why+")")
	}
	slices.Sort(names)
	return someOf(names)
}

func why(n *Node) string {
	switch {
	case n.Deleter != "":
		return "is being deleted by " + n.Deleter
	case n.Deleting:
		return "is being deleted"
	case !n.Ready:
		return "is not Ready"
	}
	return "is cordoned"
}
