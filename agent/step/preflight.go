package step

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// lookSettles is the time that new findings must last before they replace reported ones. While a
// pod is being replaced, its budget allows no eviction for a moment, and nobody needs to see that.
const lookSettles = 5 * time.Second

// LookRetry is the delay before a failed check of the pods is repeated.
const LookRetry = 30 * time.Second

// Look is the result of a check for pods that prevent a reboot.
type Look struct {
	// At is the time since which the result holds, or zero if the pods were not checked yet.
	At time.Time
	// Blocking are the pods that must not be disrupted, Kept those that the policy never removes,
	// and Guarded those that cannot be evicted. Closed are those whose budget may allow evictions
	// once the node is cordoned. A field without pods is nil.
	Blocking, Kept, Guarded, Closed *protocol.NamedPods
	// Refused are those whose budget allows no eviction now, if the request asks for them.
	Refused *protocol.NamedPods
	// Gated reports whether the policy has gates.blockingPods. Then the agent must also report that
	// it found no pods.
	Gated bool
	// Problem says why the result is unknown. It is empty if it is known.
	Problem string
}

// blocks reports whether a drain may not begin, because under the policy it would evict nothing or
// certainly time out. A try that the manager has granted may begin with a closed budget.
func (o Observation) blocks(l Look) bool {
	s := o.Settings()
	try := s.Drain.TriesClosedBudgets() && o.Entry != nil && o.Entry.Try
	vain := l.Guarded != nil || l.Closed != nil && !try
	return l.Problem != "" || l.Blocking != nil || l.Kept != nil || vain && s.Drain.OnTimeoutOrDefault() == v1alpha1.DrainTimeoutAbort
}

// startLook returns the agent's own check before it begins. If the last check found something, it
// counts for a while. If it found nothing, the agent checks again. It is zero if the agent has not
// checked, or may not begin yet.
func (o Observation) startLook() Look {
	last := o.LastStartLook
	if o.StartLook.At.IsZero() && o.mayBegin() && o.Now.Before(last.At.Add(LookRetry)) && o.blocks(last) {
		return last
	}
	return o.StartLook
}

// wantsLook returns the manager's request if it has to be answered now, which is while the node
// requires a reboot that has not begun. Otherwise it is nil.
func wantsLook(o Observation) *protocol.Preflight {
	if o.UnderWay() || !o.asks() {
		return nil
	}
	return o.Asked
}

// preflightReport returns the answer to the manager's request. known is false if the reported
// answer stays: the new one is unknown, has to settle until due, or the reboot is under way.
func preflightReport(o Observation) (value *protocol.PreflightReport, known bool, due time.Time) {
	asked, look, own := wantsLook(o), o.Look, o.startLook()
	// A single read may fail. The failure is reported, and costs the grant, only if the check in
	// the background fails, too.
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
	// After a failed drain, the manager grants the next one early only if it knows that the budget
	// allows evictions again.
	look.Gated = look.Gated || o.Record.Last().FailedTry() || asked.Failed > 0
	value = look.Report(*asked, o.BootID)
	if settled := look.At.Add(lookSettles); !mayStart(o) && settles(o, *asked, look, value) && o.Now.Before(settled) {
		return nil, false, settled
	}
	return value, true, time.Time{}
}

// settles reports whether an answer may wait a little. The first answer to a gate may not, because
// nothing is granted without it.
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

// Report returns the answer to write to the Node, or nil if the answer may be left out. A failed
// check is always reported, because the agent does not begin after one.
func (l Look) Report(asked protocol.Preflight, bootID string) *protocol.PreflightReport {
	r := &protocol.PreflightReport{
		Policy: asked.Policy, Revision: asked.Revision, BootID: bootID,
		Blocking: l.Blocking, Kept: l.Kept, Guarded: l.Guarded, Closed: l.Closed, Problem: l.Problem,
		Failed: asked.Failed, Refused: l.Refused,
	}
	if r.Blocking == nil && r.Kept == nil && r.Guarded == nil && r.Closed == nil && r.Refused == nil && r.Problem == "" && !l.Gated {
		return nil
	}
	return r
}
