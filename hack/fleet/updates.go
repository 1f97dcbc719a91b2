package fleet

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
)

// updates is the update engine of one machine.
type updates struct {
	// stage brings an update that waits for a reboot.
	stage func() error
	// boot is the engine after a reboot, before any pod runs. The bus is up.
	boot func() error
}

// installUpdateEngine is for Flatcar. What is broadcast is what `locksmithctl send-need-reboot` does; update_engine is not involved.
func installUpdateEngine(h *Host) (u updates, err error) {
	h.UpdateEngine, err = hosttest.StartUpdateEngine(h.Bus)
	return updates{stage: h.Bus.SendNeedReboot, boot: func() error {
		h.UpdateEngine.SetStatus(hosttest.Idle())
		return h.UpdateEngine.Start()
	}}, err
}

// Versions of COS.
const cosBefore, cosAfter = "18867.199.42", "18867.294.7"

// installCOS is for Container-Optimized OS: StatusUpdateAdvanced is broadcast, as when update_engine has written the other partition.
func installCOS(h *Host) (updates, error) {
	engine, err := hosttest.StartCOSUpdateEngine(h.Bus, hosttest.COSCurrent)
	stage := func() error { return engine.Emit(hosttest.COSNeedReboot(cosAfter)) }
	return updates{stage: stage, boot: func() error {
		engine.SetStatus(hosttest.COSStatus{})
		return engine.Start()
	}}, err
}

// Versions of Fedora CoreOS.
const ostreeBefore, ostreeAfter = "42.20250410.3.0", "42.20250512.3.1"

// installRPMOSTree is for rpm-ostree, which the bus starts when it is called, as `rpm-ostree upgrade` does.
func installRPMOSTree(h *Host) (updates, error) {
	daemon, err := hosttest.InstallRPMOSTree(h.Bus, hosttest.Deployment{Version: ostreeBefore, Booted: true})
	stage := func() error { return errors.Join(daemon.Start(), daemon.Stage(ostreeAfter)) }
	return updates{stage: stage, boot: func() error {
		daemon.Boot()
		return nil
	}}, err
}

// rebootPackages asked for the reboot of a Debian machine.
var rebootPackages = []string{"linux-image-6.1.0-37-amd64", "libc6", "dbus"}

// installSentinel is for the files by which packages of Debian ask for a reboot: first the file and then the list, as the packages'
// scripts write them. After the boot nothing is left: /run lies in memory.
func installSentinel(h *Host) (updates, error) {
	write := func(name, text string) error { return os.WriteFile(filepath.Join(h.run(), name), []byte(text), 0o600) }
	stage := func() error {
		return errors.Join(write("reboot-required", "*** System restart required ***\n"), write("reboot-required.pkgs", strings.Join(rebootPackages, "\n")+"\n"))
	}
	return updates{stage: stage, boot: func() error { return nil }}, nil
}
