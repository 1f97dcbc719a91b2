package rpmostree

import (
	"errors"
	"fmt"
	"slices"

	"github.com/godbus/dbus/v5"
)

// occasions are the properties whose change may change what boots next. They are read again then: what a signal reports of
// them is not used. CachedUpdate is not among them.
var occasions = map[string][]string{
	sysrootInterface: {"Deployments", "Booted"},
	osInterface:      {"DefaultDeployment", "BootedDeployment"},
}

// isOccasion reads the body of a PropertiesChanged, sa{sv}as: interface, properties with their values, names of properties.
func isOccasion(body []any) (bool, error) {
	if len(body) != 3 {
		return false, fmt.Errorf("%d values instead of 3", len(body))
	}
	iface, ifaceOK := body[0].(string)
	changed, changedOK := body[1].(map[string]dbus.Variant)
	invalidated, invalidatedOK := body[2].([]string)
	if !ifaceOK || !changedOK || !invalidatedOK {
		return false, errors.New("types other than sa{sv}as")
	}
	return slices.ContainsFunc(occasions[iface], func(name string) bool {
		_, found := changed[name]
		return found || slices.Contains(invalidated, name)
	}), nil
}
