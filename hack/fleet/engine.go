package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/agent/engine/cosupdateengine"
	"github.com/reboot-operator/reboot-operator/agent/engine/rpmostree"
	"github.com/reboot-operator/reboot-operator/agent/engine/sentinel"
	"github.com/reboot-operator/reboot-operator/agent/engine/updateengine"
	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
)

// Engine is how machines of a fleet learn that an update waits for a reboot: their update engine, and the operating
// system around it.
type Engine struct {
	// Name is the engine's name in the agent's --engines, whose auto finds it.
	Name string
	// Act states what somebody does on each machine to stage an update.
	Act string
	// Reports are the words that an agent which has detected that update reports on its Node.
	Reports []string

	// release is os-release before the reboot, and upgraded after it.
	release, upgraded string
	systemd           hosttest.Systemd
	install           func(*Host) (updates, error)
}

// DefaultEngine is the engine of machines of which nobody has reported which they have.
const DefaultEngine = updateengine.Name

// EngineNames are the engines that can be simulated.
func EngineNames() []string {
	var names []string
	for _, e := range engines() {
		names = append(names, e.Name)
	}
	return names
}

// ParseEngines reads a comma-separated list of names. An error states which names there are.
func ParseEngines(list string) ([]Engine, error) {
	all := engines()
	var named []Engine
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(e Engine) bool { return e.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no engine %q to simulate: there are %s", name, strings.Join(EngineNames(), ", "))
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
			release: flatcar, upgraded: flatcar, install: installUpdateEngine,
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
VERSION_ID=4230.2.0
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
