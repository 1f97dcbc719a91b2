// Package verdict finds in the history of a run what may never happen. It is pure: a history goes in, violations come out.
package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// History is all that an independent witness has seen of a run.
type History struct {
	// Revisions are all of Nodes, pods, PodDisruptionBudgets and policies, in the order of the store.
	Revisions []Revision
	// Machines are what the machines themselves say, in the order of time.
	Machines []MachineEvent
	// Cordons are what administrators did, by the revision in which it was written.
	Cordons []Cordon
	// Removed are the pods, by UID, that were removed with their machine, and by nobody's eviction.
	Removed map[string]bool
	// MinAvailable is what the PodDisruptionBudget of all pods keeps.
	MinAvailable int
	// Zones tells time zones by their names.
	Zones map[string]*time.Location
}

// Revision is one object after one write. One of Node, Pod, Budget and Policy is set; of what was deleted, the last state.
type Revision struct {
	// Number is the store's.
	Number int64
	// Node, Pod, Budget and Policy are the object.
	Node   *corev1.Node
	Pod    *corev1.Pod
	Budget *policyv1.PodDisruptionBudget
	Policy *v1alpha1.RebootPolicy
	// Deleted tells that it is gone for good.
	Deleted bool
}

// MachineEvent is a need, a reboot or an end of a machine.
type MachineEvent struct {
	// Machine is its number, whatever its Node is called.
	Machine int
	// What happened.
	What What
	// Node is its Node's name at that time.
	Node string
	// Boot is the boot that ends, of a reboot.
	Boot string
}

// What happens to a machine.
type What string

// What may happen to a machine.
const (
	// Needs: an update waits for a reboot from now on.
	Needs What = "needs a reboot"
	// Reboots: it goes down, because an agent asked for it.
	Reboots What = "reboots"
	// Leaves: it is gone for good.
	Leaves What = "leaves"
)

// Cordon is an administrator's word about a node.
type Cordon struct {
	// Revision is the write.
	Revision int64
	// Node is whose.
	Node string
	// On: cordoned. Else uncordoned, or the node was deleted.
	On bool
}

// Violation is something that may never happen.
type Violation struct {
	// Revision is when; 0: at the end.
	Revision int64
	// What is the rule, in few words.
	What string
	// Detail says what was seen.
	Detail string
}

// String is one line.
func (v Violation) String() string {
	if v.Revision == 0 {
		return fmt.Sprintf("%s: %s", v.What, v.Detail)
	}
	return fmt.Sprintf("%s: revision %d: %s", v.What, v.Revision, v.Detail)
}

// Check finds all violations, in the order of revisions.
func Check(h History) []Violation {
	var found []Violation
	for _, check := range []func(History) []Violation{overLimit, notASemaphore, rebootsPerNeed, LeftBehind, pastBudget, cordonUndone, outsideWindow, outsideLedger} {
		found = append(found, check(h)...)
	}
	slices.SortStableFunc(found, func(a, b Violation) int { return cmp.Compare(a.Revision, b.Revision) })
	return found
}

// attempt is a grant that a node acts on; zero: none. It disrupts the node from the cordon on until the grant is finished or
// the agent says that it stopped.
type attempt struct {
	seq      int64
	disrupts bool
	// over: a newer grant stands on the node, so this attempt had ended before.
	over bool
	// boot is the one to be ended, committed that the agent passed the point of no return.
	boot      string
	committed bool
}

func attemptOf(node *corev1.Node) attempt {
	grant, err := v1alpha1.ParseGrant(node.Annotations)
	if err != nil {
		return attempt{}
	}
	progress, err := v1alpha1.ParseProgress(node.Annotations)
	if err != nil || progress == nil {
		return attempt{}
	}
	over := grant != nil && grant.Seq > progress.Seq
	ended := over || progress.Phase == v1alpha1.PhaseAborted ||
		grant != nil && grant.Seq == progress.Seq && grant.State == v1alpha1.GrantFinished
	return attempt{
		seq: progress.Seq, disrupts: !ended, over: over, boot: progress.BootID,
		committed: progress.Phase == v1alpha1.PhaseRebooting,
	}
}
