package step

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// lookSettles is how long findings must have lasted before they are reported in place of others. A pod that is replaced leaves its
// budget without a pod to lose for a moment, and such a change helps nobody.
const lookSettles = 5 * time.Second

// LookRetry is how soon a look that failed is tried again.
const LookRetry = 30 * time.Second

// Look is what is known of the pods that prevent a reboot.
type Look struct {
	// At is since when this is known. Zero: no look was taken yet.
	At time.Time
	// Blocking are the pods that keep the node, Kept those that the policy never lets go, and Guarded those that no eviction
	// can remove. Closed are those whose budget may open once the node is cordoned. Nil: there are none.
	Blocking, Kept, Guarded, Closed *protocol.NamedPods
	// Gated reports whether the policy has gates.blockingPods: then that there are none has to be reported, too.
	Gated bool
	// Problem states why it is unknown. Empty: it is known.
	Problem string
}

// blocks reports whether a drain may not begin. Under the policy it would evict nothing or could only end by its time-out, and
// the manager has not granted a try.
func (o Observation) blocks(l Look) bool {
	s := o.Settings()
	try := s.Drain.TriesClosedBudgets() && o.Entry != nil && o.Entry.Try
	vain := l.Guarded != nil || l.Closed != nil && !try
	return l.Problem != "" || l.Blocking != nil || l.Kept != nil || vain && s.Drain.OnTimeoutOrDefault() == v1alpha1.DrainTimeoutAbort
}

// startLook is the agent's own look before it begins. What was in the way is looked for again only after a while; that nothing
// is, is never taken for granted. The zero Look: the agent has not looked, or may not begin yet.
func (o Observation) startLook() Look {
	last := o.LastStartLook
	if o.StartLook.At.IsZero() && o.mayBegin() && o.Now.Before(last.At.Add(LookRetry)) && o.blocks(last) {
		return last
	}
	return o.StartLook
}

// wantsLook is the manager's request where its answer is wanted: while the node asks for a reboot that has not begun. Nil:
// no look is needed.
func wantsLook(o Observation) *protocol.Preflight {
	if o.UnderWay() || !o.asks() {
		return nil
	}
	return o.Asked
}

// preflightReport is the answer to the manager. Known is false where what is there is kept. The answer is not known yet, or has not
// settled before due, or the reboot has begun and not ended.
func preflightReport(o Observation) (value *protocol.PreflightReport, known bool, due time.Time) {
	asked, look, own := wantsLook(o), o.Look, o.startLook()
	// A read may fail once. Only where the look in the background fails, too, the cause is reported, and costs the grant.
	failedOnce := own.Problem != "" && o.Look.Problem == ""
	switch {
	case o.UnderWay():
		return nil, false, time.Time{}
	case asked == nil:
		return nil, true, time.Time{}
	case mayStart(o) && !own.At.IsZero() && !failedOnce:
		look = own
	}
	if look.At.IsZero() {
		return nil, false, time.Time{}
	}
	// After a try that failed, the manager grants the next one early only if it knows that the budget has opened.
	look.Gated = look.Gated || o.Record.Last().FailedTry()
	value = look.Report(*asked, o.BootID)
	if settled := look.At.Add(lookSettles); !mayStart(o) && settles(o, *asked, look, value) && o.Now.Before(settled) {
		return nil, false, settled
	}
	return value, true, time.Time{}
}

// settles reports whether an answer may wait a little. The first one to a gate may not: nothing is granted without it.
func settles(o Observation, asked protocol.Preflight, look Look, value *protocol.PreflightReport) bool {
	reported := o.Reported.Preflight
	answered := reported != nil && reported.Policy == asked.Policy && reported.Revision == asked.Revision && reported.BootID == o.BootID
	return answered || !look.Gated && value != nil
}

// mayStart reports whether the node has an active grant for this boot that it has not used.
func mayStart(o Observation) bool {
	_, may := protocol.Start(o.Record, o.BootID, true, o.Now)
	return may
}

// Report is the answer as it is on the Node. Nil: nothing has to be reported. Why a look failed is reported without a gate, too: the
// agent begins after no such look.
func (l Look) Report(asked protocol.Preflight, bootID string) *protocol.PreflightReport {
	r := &protocol.PreflightReport{
		Policy: asked.Policy, Revision: asked.Revision, BootID: bootID,
		Blocking: l.Blocking, Kept: l.Kept, Guarded: l.Guarded, Closed: l.Closed, Problem: l.Problem,
	}
	if r.Blocking == nil && r.Kept == nil && r.Guarded == nil && r.Closed == nil && r.Problem == "" && !l.Gated {
		return nil
	}
	return r
}
