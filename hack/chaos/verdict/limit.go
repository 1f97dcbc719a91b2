package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// limitOf is how many nodes a policy lets be disrupted; only numbers are used here.
func limitOf(policy *v1alpha1.RebootPolicy) int {
	if c := policy.Spec.Concurrency; c != nil && c.MaxUnavailable != nil {
		return c.MaxUnavailable.IntValue()
	}
	return 1
}

// overLimit counts the disrupted nodes of every revision. A limit that is lowered asks nobody back who holds a grant, so
// what counts is the highest limit since the first of those that are disrupted was granted.
func overLimit(h History) []Violation {
	var found []Violation
	limits := []struct {
		since int64
		limit int
	}{}
	granted := map[string]int64{} // by node, the revision of its last entry in a ledger
	disrupted := map[string]bool{}
	for _, r := range h.Revisions {
		switch {
		case r.Policy != nil && !r.Deleted:
			limits = append(limits, struct {
				since int64
				limit int
			}{r.Number, limitOf(r.Policy)})
			for _, e := range r.Policy.Status.Grants {
				if _, known := granted[key(e.Node, e.Seq)]; !known {
					granted[key(e.Node, e.Seq)] = r.Number
				}
			}
			continue
		case r.Node == nil:
			continue
		}
		a := attemptOf(r.Node)
		prefix := r.Node.Name + "/"
		maps.DeleteFunc(disrupted, func(k string, _ bool) bool { return strings.HasPrefix(k, prefix) })
		if r.Deleted || !a.disrupts {
			continue
		}
		disrupted[key(r.Node.Name, a.seq)] = true
		first := r.Number
		for k := range disrupted {
			if since, known := granted[k]; known {
				first = min(first, since)
			}
		}
		limit := 0
		for i, l := range limits {
			if i+1 == len(limits) || limits[i+1].since > first {
				limit = max(limit, l.limit)
			}
		}
		if len(disrupted) > limit {
			found = append(found, Violation{r.Number, "over the limit", fmt.Sprintf("%d nodes are disrupted where %d may be: %s",
				len(disrupted), limit, strings.Join(slices.Sorted(maps.Keys(disrupted)), ", "))})
		}
	}
	return found
}

// key names one attempt of one node.
func key(node string, seq int64) string { return fmt.Sprintf("%s/%d", node, seq) }
