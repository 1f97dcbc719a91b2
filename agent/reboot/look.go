package reboot

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// lookSettles is how long findings must have stood before they are told in place of others: a pod that is replaced leaves
// its budget without a spare one for a moment, and what comes and goes by the second is nobody's business.
const lookSettles = 5 * time.Second

// Look is what is known of the pods that speak against a reboot.
type Look struct {
	// At is since when this is known. Zero: nobody has looked yet.
	At time.Time
	// Findings are those pods.
	drain.Findings
	// Gated tells whether the policy has gates.blockingPods: then that there are none has to be said, too.
	Gated bool
	// Problem says why nobody knows. Empty: it is known.
	Problem string
}

// question is what a policy makes one look for.
func (s Settings) question() drain.Question {
	return drain.Question{Drain: s.Drain, Blocking: s.BlockingPods}
}

// found is a look under a policy that has come to an end.
func (s Settings) found(at time.Time, f drain.Findings, err error) Look {
	l := Look{At: at, Findings: f, Gated: len(s.BlockingPods) > 0}
	if err != nil {
		l.Problem = engine.Shorten(err.Error())
	}
	return l
}

// objects tells whether a drain may not begin: under the policy it would evict nothing, or could only end by its time-out.
func (l Look) objects(s Settings) bool {
	guarded := len(l.Guarded) > 0 && s.Drain.OnTimeoutOrDefault() == v1alpha1.DrainTimeoutAbort
	return l.Problem != "" || len(l.Blocking) > 0 || len(l.Kept) > 0 || guarded
}

// wantsLook is the manager's question where its answer is wanted: while the node asks for a reboot that has not begun. Nil:
// nobody needs to look.
func (o Observation) wantsLook() *v1alpha1.Preflight {
	if o.Engine == nil || o.underWay() || need(o).Status != corev1.ConditionTrue {
		return nil
	}
	return o.Asked
}

// preflightReport is the answer to the manager. Known is false where what stands is kept: it is not known yet, or has not
// settled before due; and once the reboot has begun, until its end.
func preflightReport(o Observation) (value *string, known bool, due time.Time) {
	asked, look := o.wantsLook(), o.Look
	switch {
	case o.underWay():
		return nil, false, time.Time{}
	case asked == nil:
		return nil, true, time.Time{}
	case o.mayStart() && !o.StartLook.At.IsZero():
		look = o.StartLook
	}
	if look.At.IsZero() {
		return nil, false, time.Time{}
	}
	value = look.report(*asked, o.BootID)
	if settled := look.At.Add(lookSettles); !o.mayStart() && o.settles(*asked, look, value) && o.Now.Before(settled) {
		return nil, false, settled
	}
	return value, true, time.Time{}
}

// settles tells whether an answer may wait a little. The first one to a gate may not: nothing is granted without it.
func (o Observation) settles(asked v1alpha1.Preflight, look Look, value *string) bool {
	told := o.Told
	answered := told != nil && told.Policy == asked.Policy && told.Revision == asked.Revision && told.BootID == o.BootID
	return answered || !look.Gated && value != nil
}

// mayStart tells whether the agent looks, or has looked, because it may begin.
func (o Observation) mayStart() bool {
	_, may := Start(o.Record, o.BootID, true, o.Now)
	return may
}

// report is the answer as it stands on the Node. Nil: nothing has to be said.
func (l Look) report(asked v1alpha1.Preflight, bootID string) *string {
	r := v1alpha1.PreflightReport{
		Policy: asked.Policy, Revision: asked.Revision, BootID: bootID,
		Blocking: namedPods(l.Blocking), Kept: namedPods(l.Kept), Guarded: namedPods(l.Guarded), Problem: l.Problem,
	}
	if !l.Gated {
		r.Problem = "" // nobody waits for it
	}
	if r.Blocking == nil && r.Kept == nil && r.Guarded == nil && !l.Gated {
		return nil
	}
	return new(r.String())
}

// namedPods names the first few pods. Nil: there are none.
func namedPods(pods []drain.Pod) *v1alpha1.NamedPods {
	if len(pods) == 0 {
		return nil
	}
	list := &v1alpha1.NamedPods{Count: int32(len(pods))}
	for _, p := range pods[:min(len(pods), v1alpha1.MaxNamedPods)] {
		list.Pods = append(list.Pods, v1alpha1.NamedPod{
			Pod: fmt.Sprintf("%s/%s", p.Namespace, p.Name), Why: message.Shorten(v1alpha1.MaxPodReasonBytes, p.Message),
		})
	}
	return list
}
