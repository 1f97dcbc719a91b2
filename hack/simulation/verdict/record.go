package verdict

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Admin is the field manager of an administrator's writes.
const Admin = "admin"

// Record is one thing that happened: a revision of a Node or of a policy, or a deed of a host.
type Record struct {
	At time.Time
	// Name is whose it is.
	Name string
	// By is the field manager that wrote a revision.
	By string
	// Node and Policy are revisions; Gone: it was deleted.
	Node   *corev1.Node
	Policy *v1alpha1.RebootPolicy
	Gone   bool
	// Host is what a host did.
	Host Deed
}

// Deed is what a host did.
type Deed string

// The deeds of hosts.
const (
	// Staged: an update waits for a reboot.
	Staged Deed = "staged an update"
	// Rebooted: the host went down because logind was asked.
	Rebooted Deed = "was rebooted"
	// Lost: the host went down by itself.
	Lost Deed = "lost its power"
	// Scrapped: there is no such host any more, and what waited on it never comes.
	Scrapped Deed = "was scrapped"
)

// Rule is one of those that no history may break.
type Rule string

// The rules.
const (
	Limit       Rule = "never more nodes disrupted than the limit"
	Need        Rule = "exactly one reboot for each need"
	Cordon      Rule = "nobody is left cordoned"
	Ownership   Rule = "no cordon of an administrator is undone"
	Window      Rule = "nothing is granted outside of a window"
	Fence       Rule = "a grant is for one boot of one machine"
	Ledger      Rule = "nobody begins outside the ledger"
	Convergence Rule = "it converges once faults end"
)

// Violation is a rule that was broken, when, and how.
type Violation struct {
	At   time.Time
	Rule Rule
	How  string
}

// String is a line for people.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s: %s", v.At.Format(time.RFC3339), v.Rule, v.How)
}

// Check judges a whole history.
func Check(history []Record) []Violation {
	j := NewJudge()
	for _, r := range history {
		j.Take(r)
	}
	return j.Violations()
}
