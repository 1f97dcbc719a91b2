package underway

import (
	"fmt"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// awaitTaints reports whether a startup taint still keeps pods off the node. A removed taint leaves
// no timestamp, so the node records when it was first seen and when it was gone.
func (t *tracker) awaitTaints() bool {
	taint, noted := record.StartupTaint(t.Node), t.times().Noted()
	if taint == "" && (noted == nil || noted.TakesPods == nil || *noted.TakesPods) {
		return false
	}
	t.Message = "back; settling begins"
	if taint != "" {
		t.Message = fmt.Sprintf("back, but taint %s has kept pods off the node since the reboot; settling begins once it is gone", taint)
	}
	if taint == "" || noted == nil || noted.TakesPods == nil || *noted.TakesPods {
		t.Action, t.takesPods = NoteTaint, taint == ""
		return true
	}
	timeout := t.pass.Policy.Spec.RebootOrDefault().TimeoutOrDefault()
	t.overdue(noted.At.Add(timeout), v1alpha1.ReasonStartupTaint, fmt.Sprintf(
		"the node is Ready, but taint %s has kept pods off it since the reboot, for more than %s; it keeps its slot. Check what should remove the "+
			"taint; if it is meant to stay, run: kubectl uncordon %s", taint, timeout, t.Node.Name))
	return true
}
