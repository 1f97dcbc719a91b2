package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/agent/engine/cosupdateengine"
	"github.com/reboot-operator/reboot-operator/agent/engine/rpmostree"
	"github.com/reboot-operator/reboot-operator/agent/engine/sentinel"
	"github.com/reboot-operator/reboot-operator/agent/engine/updateengine"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

// Engine is an update engine, with the operating system around it, that tells a machine that an
// update waits for a reboot.
type Engine struct {
	// Name is the engine's name in the agent's --engines flag. Zincati's is rpm-ostree there.
	Name string
	// Act describes what stages an update on each machine.
	Act string
	// Reports lists parts of the message that an agent reports once it has detected the update.
	Reports []string

	// release and upgraded are the contents of os-release before and after the reboot.
	release, upgraded string
	systemd           hosttest.Systemd
	install           func(*Host) (updates, error)
}

// DefaultEngine is the engine of machines without a given one.
const DefaultEngine = updateengine.Name

// EngineNames returns the names of the engines that can be simulated.
func EngineNames() []string {
	var names []string
	for _, e := range engines() {
		names = append(names, e.Name)
	}
	return names
}

// ParseEngines parses a comma-separated list of names. Its error lists the valid names.
func ParseEngines(list string) ([]Engine, error) {
	all := engines()
	var named []Engine
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(e Engine) bool { return e.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("engine %q cannot be simulated; choose from %s", name, strings.Join(EngineNames(), ", "))
		}
		named = append(named, all[i])
	}
	return named, nil
}

func engines() []Engine {
	return []Engine{
		{
			Name: updateengine.Name, Act: "locksmithctl send-need-reboot",
			Reports: []string{"StatusUpdate broadcast asks for a reboot"},
			release: fmt.Sprintf(flatcar, "4152.2.3"), upgraded: fmt.Sprintf(flatcar, "4230.2.0"), install: installUpdateEngine,
		},
		{
			Name: cosupdateengine.Name, Act: "update_engine has installed " + cosAfter,
			Reports: []string{cosAfter},
			release: fmt.Sprintf(cos, cosBefore), upgraded: fmt.Sprintf(cos, cosAfter),
			systemd: hosttest.SystemdBefore257, install: installCOS,
		},
		{
			Name: rpmostree.Name, Act: "rpm-ostree upgrade, which stages " + ostreeAfter,
			Reports: []string{ostreeAfter, hosttest.Commit(ostreeAfter)[:12]},
			release: fmt.Sprintf(coreOS, ostreeBefore), upgraded: fmt.Sprintf(coreOS, ostreeAfter),
			systemd: hosttest.SystemdBefore257, install: installRPMOSTree,
		},
		{
			Name: zincatiName, Act: "Zincati stages " + ostreeAfter + ", locked, and asks the FleetLock server",
			Reports: []string{ostreeAfter, "Zincati finalizes it"},
			release: fmt.Sprintf(coreOS, ostreeBefore), upgraded: fmt.Sprintf(coreOS, ostreeAfter),
			systemd: hosttest.SystemdBefore257, install: installZincati,
		},
		{
			Name: sentinel.Name, Act: "apt-get upgrade, which leaves /run/reboot-required",
			Reports: rebootPackages,
			release: debian, upgraded: debian,
			systemd: hosttest.SystemdBefore257, install: installSentinel,
		},
	}
}

// The operating systems of the machines.
const (
	flatcar = `ID=flatcar
VERSION_ID=%s
PRETTY_NAME="Simulated Flatcar"
`
	cos = `ID=cos
VERSION_ID=121
BUILD_ID=%s
PRETTY_NAME="Simulated Container-Optimized OS"
`
	coreOS = `ID=fedora
VERSION_ID=42
VARIANT_ID=coreos
OSTREE_VERSION='%s'
PRETTY_NAME="Simulated Fedora CoreOS"
`
	debian = `ID=debian
VERSION_ID="12"
PRETTY_NAME="Simulated Debian"
`
)

// updates plays the update engine of one machine.
type updates struct {
	// stage stages an update.
	stage func() error
	// boot restores the engine after a reboot, before any pod runs. The bus is up.
	boot func() error
}

// installUpdateEngine plays Flatcar. stage broadcasts the same signal as `locksmithctl
// send-need-reboot`, without update_engine.
func installUpdateEngine(h *Host) (u updates, err error) {
	h.UpdateEngine, err = hosttest.StartUpdateEngine(h.Bus)
	return updates{stage: h.Bus.SendNeedReboot, boot: func() error {
		h.UpdateEngine.SetStatus(hosttest.Idle())
		return h.UpdateEngine.Start()
	}}, err
}

// Versions of COS.
const cosBefore, cosAfter = "18867.199.42", "18867.294.7"

// installCOS plays Container-Optimized OS. stage broadcasts StatusUpdateAdvanced, as update_engine
// does when it has written the other partition.
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

// installRPMOSTree plays rpm-ostree, which the bus starts when it is called, as by `rpm-ostree
// upgrade`.
func installRPMOSTree(h *Host) (updates, error) {
	daemon, err := hosttest.InstallRPMOSTree(h.Bus, hosttest.Deployment{Version: ostreeBefore, Booted: true})
	stage := func() error { return errors.Join(daemon.Start(), daemon.Stage(ostreeAfter)) }
	return updates{stage: stage, boot: func() error {
		daemon.Boot()
		return nil
	}}, err
}

// rebootPackages lists the packages that requested the reboot of a Debian machine.
var rebootPackages = []string{"linux-image-6.1.0-37-amd64", "libc6", "dbus"}

// installSentinel plays the files by which Debian packages request a reboot. Their scripts write
// first the file and then the list. A boot removes them, because /run is in memory.
func installSentinel(h *Host) (updates, error) {
	write := func(name, text string) error { return os.WriteFile(filepath.Join(h.run(), name), []byte(text), 0o600) }
	stage := func() error {
		return errors.Join(write("reboot-required", "*** System restart required ***\n"), write("reboot-required.pkgs", strings.Join(rebootPackages, "\n")+"\n"))
	}
	return updates{stage: stage, boot: func() error { return nil }}, nil
}
