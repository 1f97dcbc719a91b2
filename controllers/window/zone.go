package window

import (
	"fmt"
	"strings"
	"time"
)

// loadZone loads a zone by its IANA name. A name that means another zone on another machine is an error.
func loadZone(name string) (*time.Location, error) {
	if !isZoneName(name) {
		return nil, fmt.Errorf("%q is not an IANA time zone name such as UTC or Europe/Berlin", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("loading time zone: %w", err)
	}
	return zone, nil
}

// isZoneName is whether the name is of the right form, and not one of the files of a zoneinfo directory that depend
// on the machine or that count leap seconds. Paths out of that directory are not names.
func isZoneName(name string) bool {
	switch strings.ToLower(name) {
	case "", "local", "localtime", "posixrules":
		return false
	}
	for i, part := range strings.Split(name, "/") {
		if !isZoneNamePart(part) || i == 0 && (part == "posix" || part == "right") {
			return false
		}
	}
	return true
}

func isZoneNamePart(part string) bool {
	return part != "" && part[0] != '.' && part[0] != '-' && !strings.ContainsFunc(part, isOutsideZoneNames)
}

func isOutsideZoneNames(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("+-_.", r)
}
