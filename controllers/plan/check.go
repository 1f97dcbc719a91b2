package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Objection is why a node may not be rebooted now: THE reason, and a sentence a user can act on.
type Objection struct {
	Reason  v1alpha1.Reason
	Message string
	// Until is the instant at which the objection falls by itself; zero: it needs somebody to do something.
	Until time.Time
}

// check is one reason why a node may not be rebooted now; nil means it has no objection.
type check func(f *fleet, n *Node) *Objection

// standing are the checks that hold until the agent has begun, in their fixed order; the first objection is the reason.
var standing = []check{nodePaused, policyInvalid, policyPaused, policyHalted, blackout, windowClosed, nodeUnavailable, agentObjects}

// entry are the checks before a grant. Control plane and budget follow, because they depend on who is chosen first.
var entry = append(slices.Clip(standing), recordUnreadable, backingOff)

func (f *fleet) first(checks []check, n *Node) *Objection {
	for _, c := range checks {
		if o := c(f, n); o != nil {
			return o
		}
	}
	return nil
}

func nodePaused(_ *fleet, n *Node) *Objection {
	if !n.Paused {
		return nil
	}
	return objection(v1alpha1.ReasonNodePaused, "the node is paused; kubectl annotate node %s %s- goes on", n.Name, v1alpha1.AnnotationPaused)
}

func policyInvalid(f *fleet, _ *Node) *Objection {
	if m := f.invalid(); m != "" {
		return objection(v1alpha1.ReasonInvalid, "policy %s: %s", f.name, m)
	}
	return nil
}

func policyPaused(f *fleet, _ *Node) *Objection {
	pause := f.Policy.Spec.Pause
	if !f.paused() {
		return nil
	}
	o := objection(v1alpha1.ReasonPaused, "policy %s is paused", f.name)
	if pause.Until != nil {
		o.Until = pause.Until.Time
		o.Message += " until " + instant(o.Until)
	}
	if pause.Reason != "" {
		o.Message += ": " + pause.Reason
	}
	return o
}

func policyHalted(f *fleet, _ *Node) *Objection {
	if !f.stands.Halted {
		return nil
	}
	return objection(v1alpha1.ReasonHalted, `policy %s halted after failures; kubectl annotate rebootpolicy %s %s="why" goes on`,
		f.name, f.name, v1alpha1.AnnotationResume)
}

func blackout(f *fleet, _ *Node) *Objection {
	w := f.Window
	if !w.Blackout {
		return nil
	}
	o := objection(v1alpha1.ReasonBlackout, "blackout %s is in force%s", w.Name, opening(w.OpensAt))
	if w.BlackoutReason != "" {
		o.Message += ": " + w.BlackoutReason
	}
	o.Until = w.OpensAt
	return o
}

func windowClosed(f *fleet, _ *Node) *Objection {
	if f.Window.Open {
		return nil
	}
	o := objection(v1alpha1.ReasonWindowClosed, "no window is open%s", opening(f.Window.OpensAt))
	o.Until = f.Window.OpensAt
	return o
}

func opening(at time.Time) string {
	if at.IsZero() {
		return "; none opens within a year"
	}
	return "; the next reboot may start " + instant(at)
}

func nodeUnavailable(_ *fleet, n *Node) *Objection {
	switch {
	case n.Deleting:
		return objection(v1alpha1.ReasonNodeUnavailable, "the node is being deleted")
	case !n.Ready:
		return objection(v1alpha1.ReasonNodeUnavailable, "the node is not Ready: a reboot could not be proved; mend it first")
	case n.BootID == "":
		return objection(v1alpha1.ReasonNodeUnavailable, "the kubelet reports no boot ID: a reboot could not be proved")
	}
	return nil
}

// agentObjects: the agent knows no policy before it has a grant, so it tells of what this policy may ignore too.
func agentObjects(f *fleet, n *Node) *Objection {
	for _, o := range n.Objection.All() {
		if !f.ignores(o.Reason) {
			return &Objection{Reason: o.Reason, Message: o.Message}
		}
	}
	return nil
}

// ignores tells whether the policy says that an objection of the agent counts for nothing.
func (f *fleet) ignores(reason v1alpha1.Reason) bool {
	reboot := f.Policy.Spec.RebootOrDefault()
	switch reason {
	case v1alpha1.ReasonInhibited:
		return reboot.InhibitorsOrDefault() == v1alpha1.InhibitorsIgnore
	case v1alpha1.ReasonCoordinatorConflict:
		return reboot.CoordinatorsOrDefault() == v1alpha1.CoordinatorsIgnore
	}
	return false
}

func recordUnreadable(_ *fleet, n *Node) *Objection {
	if !n.progressLost {
		return nil
	}
	return objection(v1alpha1.ReasonRecordUnreadable, "%s; the agent repairs it, or: kubectl annotate node %s %s-",
		n.Unreadable, n.Name, v1alpha1.AnnotationProgress)
}

func objection(reason v1alpha1.Reason, format string, args ...any) *Objection {
	return &Objection{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// instant writes a time the way people read it in a status; it is absolute, so that a message does not change by itself.
func instant(t time.Time) string { return t.UTC().Format("Mon 2006-01-02 15:04:05 UTC") }

func list(names []string) string { return strings.Join(names, ", ") }
