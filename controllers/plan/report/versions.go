package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

const (
	// maxSystems is the number of operating systems in a status, and maxVersions the number of
	// versions of each besides the newest.
	maxSystems  = 8
	maxVersions = 5
)

// system is an operating system and its update channel. Versions are compared only within one.
type system struct{ os, group string }

// running is the system and version of a node, from its agent's labels.
type running struct {
	system

	version string
}

// versionCount counts nodes by what they run.
type versionCount struct {
	counts map[running]*v1alpha1.VersionNodes
	// last holds the system and version of the previous node, and of points to its entry in counts.
	// Most nodes run the same.
	last running
	of   *v1alpha1.VersionNodes
}

// Versions returns the wanted status.versions for these nodes.
func Versions(nodes []*record.Node) []v1alpha1.SystemVersions {
	var c versionCount
	for _, n := range nodes {
		c.add(n)
	}
	return c.report()
}

// add counts a node. It leaves out nodes whose agent has not reported a version or whose system has
// none.
func (c *versionCount) add(n *record.Node) {
	is := running{system{n.OS, n.OSGroup}, n.OSVersion}
	if is.os == "" || is.version == "" {
		return
	}
	if c.of == nil || is != c.last {
		if c.counts == nil {
			c.counts = map[running]*v1alpha1.VersionNodes{}
		}
		if c.counts[is] == nil {
			c.counts[is] = &v1alpha1.VersionNodes{Version: is.version}
		}
		c.last, c.of = is, c.counts[is]
	}
	c.of.Nodes++
	if !n.NeedsReboot() {
		c.of.WithoutNeed++
	}
}

// report lists the systems with the most nodes first.
func (c *versionCount) report() []v1alpha1.SystemVersions {
	bySystem := map[system][]v1alpha1.VersionNodes{}
	for is, count := range c.counts {
		bySystem[is.system] = append(bySystem[is.system], *count)
	}
	if len(bySystem) == 0 {
		return nil
	}
	all := make([]v1alpha1.SystemVersions, 0, len(bySystem))
	for is, versions := range bySystem {
		all = append(all, systemVersions(is, versions))
	}
	slices.SortFunc(all, func(a, b v1alpha1.SystemVersions) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.OS, b.OS), cmp.Compare(a.Group, b.Group))
	})
	return all[:min(len(all), maxSystems)]
}

// systemVersions sorts the versions of one system: those that compare first, the newest in front.
func systemVersions(is system, versions []v1alpha1.VersionNodes) v1alpha1.SystemVersions {
	slices.SortFunc(versions, func(a, b v1alpha1.VersionNodes) int { return compareVersions(b.Version, a.Version) })
	s := v1alpha1.SystemVersions{OS: is.os, Group: is.group}
	for _, v := range versions {
		s.Nodes += v.Nodes
	}
	if newest := versions[0]; isNumbers(newest.Version) {
		s.Newest, s.OnNewest = newest.Version, newest.Nodes
		versions = versions[1:]
	}
	for more := len(versions) - maxVersions; more > 0; more-- {
		i := leastUseful(versions)
		versions = slices.Delete(versions, i, i+1)
	}
	s.Others = append(s.Others, versions...)
	return s
}

// leastUseful returns the index of the version to leave out if there are too many: the oldest whose
// nodes all need a reboot, or else the newest. So the versions of nodes that have not asked for a
// reboot stay, and among those the oldest.
func leastUseful(versions []v1alpha1.VersionNodes) int {
	for i, v := range slices.Backward(versions) {
		if v.WithoutNeed == 0 {
			return i
		}
	}
	return 0
}

// compareVersions compares two versions number by number. If one is a prefix of the other, the
// longer one is newer. Versions that are not numbers between dots come before all others, in
// alphabetical order.
func compareVersions(a, b string) int {
	switch numbers := isNumbers(a); {
	case numbers && !isNumbers(b):
		return 1
	case !numbers && isNumbers(b):
		return -1
	case !numbers:
		return cmp.Compare(a, b)
	}
	byNumber := slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(a, b string) int {
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0") // a number may have more digits than any integer
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return cmp.Or(byNumber, cmp.Compare(a, b))
}

// isNumbers reports whether a version is numbers between dots, such as 4593.1.0.
func isNumbers(version string) bool {
	for number := range strings.SplitSeq(version, ".") {
		if number == "" || strings.Trim(number, "0123456789") != "" {
			return false
		}
	}
	return true
}
