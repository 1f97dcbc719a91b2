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
	// files are those that ask for a reboot, at least one.
	files []string
	// unreadable states why folder, which should hold one of them, cannot be read. Empty: all of them were.
	unreadable, folder string
	// missing reports that it is unreadable because there is no such folder.
	missing bool
	// present are those of the files that exist.
	present []string
	// packages that asked for the reboot, in the order in which they did.
	packages []string
}

// report is what the observation reports to others. Its content is for people; only that a file exists counts, also where another
// one cannot be looked for.
func (o observation) report() engine.Report {
	unread := ""
	if o.unreadable != "" {
		unread = fmt.Sprintf("The host's %s cannot be read: %s.", o.folder, o.unreadable)
	}
	switch {
	case len(o.present) > 0:
		return engine.Report{
			Engine: Name, State: engine.Needed, Reason: v1alpha1.ReasonSentinelPresent,
			Message: engine.Shorten(strings.TrimSpace(message(o.present, o.packages) + " " + unread)),
		}
	case unread != "":
		return engine.Unreachable(Name, unread)
	}
	return engine.UpToDate(Name, none(o.files))
}

// none reports that none of the files exists.
func none(files []string) string {
	last := len(files) - 1
	if last == 0 {
		return files[0] + " does not exist on the host."
	}
	return fmt.Sprintf("Neither %s nor %s exists on the host.", strings.Join(files[:last], ", "), files[last])
}

// maxNamed is how many packages a message names at most.
const maxNamed = 16

// message names the files, as many of the packages as there is room for, and how many are left.
func message(present, packages []string) string {
	exists := present[0] + " exists on the host"
	if len(present) > 1 {
		exists = strings.Join(present, " and ") + " exist on the host"
	}
	for named := min(len(packages), maxNamed); named > 0; named-- {
		text := exists + ", because of " + strings.Join(packages[:named], ", ")
		if left := len(packages) - named; left > 0 {
			text += fmt.Sprintf(" and %d more", left)
		}
		if text += "."; len(text) <= engine.MaxMessageBytes {
			return text
		}
	}
	return engine.Shorten(exists + ".")
}

// appendPackages reads a list of packages: a name on each line, often the same one several times. What is no name of a
// package is passed over.
func appendPackages(packages []string, content string) []string {
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
