package sentinel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// observation is what a look found. The zero one is no file.
type observation struct {
	// unreadable says why the host's /run cannot be read. Empty: it was.
	unreadable string
	// missing says that it is unreadable because there is no such folder.
	missing bool
	// present says that the file exists.
	present bool
	// packages that asked for the reboot, in the order in which they did.
	packages []string
}

// report is what the observation says to others. Its content is for people; only that the file exists counts.
func (o observation) report() engine.Report {
	switch {
	case o.unreadable != "":
		return engine.Report{
			Engine: Name, State: engine.Unknown, Reason: v1alpha1.ReasonEngineUnreachable,
			Message: engine.Shorten(fmt.Sprintf("The host's /run cannot be read: %s.", o.unreadable)),
		}
	case o.present:
		return engine.Report{
			Engine: Name, State: engine.Needed, Reason: v1alpha1.ReasonSentinelPresent, Message: message(o.packages),
		}
	}
	return engine.Report{
		Engine: Name, State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate,
		Message: "/run/reboot-required does not exist on the host.",
	}
}

// presence is that of the folder: the file itself comes and goes.
func (o observation) presence() engine.Presence {
	switch {
	case o.missing:
		return engine.Missing
	case o.unreadable != "":
		return engine.Silent
	}
	return engine.Answering
}

// maxNamed is how many packages a message names at most.
const maxNamed = 16

// message names as many of the packages as there is room for, and how many are left.
func message(packages []string) string {
	const exists = "/run/reboot-required exists on the host"
	for named := min(len(packages), maxNamed); named > 0; named-- {
		text := exists + ", because of " + strings.Join(packages[:named], ", ")
		if left := len(packages) - named; left > 0 {
			text += fmt.Sprintf(" and %d more", left)
		}
		if text += "."; len(text) <= engine.MaxMessageBytes {
			return text
		}
	}
	return exists + "."
}

// parsePackages reads the list of packages: a name on each line, often the same one several times. What is no name of a
// package is passed over.
func parsePackages(content string) []string {
	var packages []string
	for line := range strings.Lines(content) {
		name := strings.TrimSpace(line)
		if isPackage(name) && !slices.Contains(packages, name) {
			packages = append(packages, name)
		}
	}
	return packages
}

// isPackage takes the names of Debian's packages and of others', with a version or without.
func isPackage(name string) bool {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return name != "" && len(name) <= 64 && strings.Trim(name, letters+"+._~:=-") == "" &&
		strings.TrimLeft(name, letters) != name
}
