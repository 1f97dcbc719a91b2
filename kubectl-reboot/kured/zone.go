package kured

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // the zones, built in
)

// zoneName is what a RebootPolicy takes.
var zoneName = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$`)

// windowZone is the zone of the windows; empty: UTC.
func windowZone(c *conversion) (string, error) {
	name := c.flags.zone
	if name == "Local" {
		return localZone(c), nil
	}
	if _, err := time.LoadLocation(name); err != nil {
		return "", fmt.Errorf("--time-zone %q is no zone, and kured does not start with it", name)
	}
	if name == "" || name == "UTC" {
		return "", nil
	}
	if !zoneName.MatchString(name) || len(name) > 64 {
		return "", fmt.Errorf("--time-zone %q: a policy takes names such as Europe/Berlin; give the zone by such a name", name)
	}
	return name, nil
}

// localZone is the container's: UTC, unless its variable TZ or a file of the host reports otherwise.
func localZone(c *conversion) string {
	name := strings.TrimPrefix(c.kured.variables().values["TZ"], ":")
	if _, err := time.LoadLocation(name); err == nil && zoneName.MatchString(name) {
		c.report.carried = append(c.report.carried, line{"--time-zone=Local", "timeZone " + name + ", from the container's variable TZ"})
		return utcIsAbsent(name)
	}
	c.report.open = append(c.report.open, line{
		"--time-zone=Local",
		"UTC is assumed, which is the zone of kured's image. If the pod has the host's /etc/localtime, give the windows its timeZone",
	})
	return ""
}

func utcIsAbsent(name string) string {
	if name == "UTC" {
		return ""
	}
	return name
}
