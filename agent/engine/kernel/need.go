package kernel

import (
	"fmt"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// observation is what a look found.
type observation struct {
	// running kernel; zero where it is unknown.
	running release
	// installed kernels of any flavour.
	installed []release
}

// report is what the observation reports to others. A need is a kernel of the running one's flavour that is newer. That there
// are older ones only is none: the running one may come from elsewhere, and would again after a reboot.
func (o observation) report() engine.Report {
	newest, found := newest(o.installed, o.running.flavour)
	switch {
	case o.running.text == "":
		return unknown("The running kernel's release cannot be read.")
	case len(o.installed) == 0:
		return unknown("No kernel is found in the host's /usr/lib/modules, /lib/modules or /boot.")
	case found && newest.newerThan(o.running):
		return engine.Report{
			Engine: Name, State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: newest.text,
			Running: o.running.text, Message: fmt.Sprintf("Kernel %s is installed, and %s is running.", newest.text, o.running.text),
		}
	}
	return engine.Report{
		Engine: Name, State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate,
		Message: fmt.Sprintf("Kernel %s is running, and no newer one of its kind is installed.", o.running.text),
	}
}

func unknown(why string) engine.Report {
	return engine.Report{
		Engine: Name, State: engine.Unknown, Reason: v1alpha1.ReasonEngineUnreachable, Message: why,
	}
}
