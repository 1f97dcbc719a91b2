package step

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
)

// UnexpectedReboot returns the reboot that began this boot if nobody granted it, or nil. The first report
// of a boot finds it, because the record on the Node is from another boot, and later ones keep it.
func UnexpectedReboot(o Observation) *protocol.UnexpectedReboot {
	switch {
	case o.Before == nil || o.Before.BootID == "":
		return nil
	case o.Before.BootID == o.BootID:
		return o.Before.Unexpected
	case explained(o):
		return nil
	}
	t := o.Now
	if o.Uptime > 0 {
		t = o.booted()
	}
	unexpected := &protocol.UnexpectedReboot{At: metav1.NewTime(t), FromVersion: o.VersionBefore}
	if o.OS != nil {
		unexpected.ToVersion = o.OS.Version
	}
	return unexpected
}

// explained reports whether an attempt explains why the boot of the last report has ended. It rebooted
// the host, or was under way when something else did.
func explained(o Observation) bool {
	last := o.Record.Last()
	if o.Record.ProgressErr != nil {
		return true
	}
	endedNow := last.Phase == protocol.PhaseAborted && o.Uptime > 0 && !last.At.Time.Before(o.booted())
	return last.BootID == o.Before.BootID && (last.Phase == protocol.PhaseRebooting || last.Phase == protocol.PhaseDraining || endedNow)
}
