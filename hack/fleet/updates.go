package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
)

// flatcarUpdates is update_engine of Flatcar.
type flatcarUpdates struct {
	bus    *hosttest.Bus
	engine *hosttest.UpdateEngine
}

func installUpdateEngine(h *Host) (updates, error) {
	engine, err := hosttest.StartUpdateEngine(h.Bus)
	return &flatcarUpdates{h.Bus, engine}, err
}

// stage broadcasts what `locksmithctl send-need-reboot` does; update_engine itself is not involved.
func (u *flatcarUpdates) stage() error { return u.bus.SendNeedReboot() }

func (u *flatcarUpdates) boot() error {
	u.engine.SetStatus(hosttest.Idle())
	return u.engine.Start()
}

// Versions of COS.
const cosBefore, cosAfter = "18867.199.42", "18867.294.7"

// cosUpdates is update_engine of Container-Optimized OS.
type cosUpdates struct{ engine *hosttest.COSUpdateEngine }

func installCOS(h *Host) (updates, error) {
	engine, err := hosttest.StartCOSUpdateEngine(h.Bus, hosttest.COSCurrent)
	return &cosUpdates{engine}, err
}

// stage broadcasts StatusUpdateAdvanced, as update_engine does when it has written the other partition.
func (u *cosUpdates) stage() error { return u.engine.Emit(hosttest.COSNeedReboot(cosAfter)) }

func (u *cosUpdates) boot() error {
	u.engine.SetStatus(hosttest.COSStatus{})
	return u.engine.Start()
}

// Versions of Fedora CoreOS.
const ostreeBefore, ostreeAfter = "42.20250410.3.0", "42.20250512.3.1"

// ostreeUpdates is rpm-ostree, which the bus starts when it is called.
type ostreeUpdates struct{ daemon *hosttest.RPMOSTree }

func installRPMOSTree(h *Host) (updates, error) {
	daemon, err := hosttest.InstallRPMOSTree(h.Bus, hosttest.Deployment{Version: ostreeBefore, Booted: true})
	return &ostreeUpdates{daemon}, err
}

// stage is what the daemon does for `rpm-ostree upgrade`, whose call starts it.
func (u *ostreeUpdates) stage() error {
	if err := u.daemon.Start(); err != nil {
		return err
	}
	return u.daemon.Stage(ostreeAfter)
}

func (u *ostreeUpdates) boot() error {
	u.daemon.Boot()
	return nil
}

// rebootPackages asked for the reboot of a Debian machine.
var rebootPackages = []string{"linux-image-6.1.0-37-amd64", "libc6", "dbus"}

// sentinelUpdates are the files by which packages of Debian ask for a reboot.
type sentinelUpdates struct{ run string }

func installSentinel(h *Host) (updates, error) { return &sentinelUpdates{h.run()}, nil }

// stage writes the file and then the list, as the packages' scripts do.
func (u *sentinelUpdates) stage() error {
	for _, file := range []struct{ name, content string }{
		{"reboot-required", "*** System restart required ***\n"},
		{"reboot-required.pkgs", strings.Join(rebootPackages, "\n") + "\n"},
	} {
		if err := os.WriteFile(filepath.Join(u.run, file.name), []byte(file.content), 0o600); err != nil {
			return fmt.Errorf("asking for a reboot: %w", err)
		}
	}
	return nil
}

// boot finds nothing left: /run lies in memory.
func (u *sentinelUpdates) boot() error { return nil }
