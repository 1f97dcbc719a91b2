package host

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	securejoin "github.com/cyphar/filepath-securejoin"
	"github.com/godbus/dbus/v5"
)

// Zincati is the name of the update agent of Fedora CoreOS in messages.
const Zincati = "Zincati"

const zincatiUnit = "zincati.service"

// zincatiOff is in the status of the unit after Zincati has read updates.enabled=false. It then
// stays active but does nothing.
// https://github.com/coreos/zincati/blob/main/src/update_agent/actor.rs
const zincatiOff = "auto-updates logic disabled by configuration"

// fleetLock is the strategy with which Zincati reboots only when its FleetLock server permits it.
const fleetLock = "fleet_lock"

// zincatiAdvice configures Zincati to use the operator's FleetLock server.
const zincatiAdvice = `printf '[updates]\nstrategy = "fleet_lock"\nfleet_lock.base_url = "http://CLUSTER-IP/"\n' ` +
	">/etc/zincati/config.d/99-fleet-lock.toml && systemctl restart zincati.service"

// zincatiFolders are the folders with Zincati's configuration fragments. A file in a later folder
// replaces one of the same name in an earlier folder.
var zincatiFolders = []string{"/usr/lib/zincati/config.d", "/run/zincati/config.d", "/etc/zincati/config.d"}

// zincatiReboots reports whether Zincati reboots the host without asking a FleetLock server.
func zincatiReboots(ctx context.Context, on activeUnit) (bool, error) {
	status, err := unitProperty(ctx, on.conn, on.unit, systemdServiceInterface, "StatusText")
	if err != nil || strings.Contains(status, zincatiOff) {
		return false, err
	}
	strategy, err := zincatiStrategy(ctx, on)
	return strategy != fleetLock, err
}

// FleetLockClient returns the name of the program on the host that finalizes staged updates and
// reboots the host once a FleetLock server permits it. It is empty if the host does not have one,
// or if that is unknown.
func (c Coordinators) FleetLockClient(ctx context.Context) (string, error) {
	conn, err := c.Connect(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	on := activeUnit{conn: conn, root: c.HostRoot, unit: zincatiUnit}
	active, err := unitIsActive(ctx, on, zincatiUnit)
	if err != nil || !active {
		return "", err
	}
	status, err := unitProperty(ctx, conn, zincatiUnit, systemdServiceInterface, "StatusText")
	if err != nil || strings.Contains(status, zincatiOff) {
		return "", err
	}
	strategy, err := zincatiStrategy(ctx, on)
	if err != nil || strategy != fleetLock {
		return "", err
	}
	return Zincati, nil
}

// zincatiStrategy returns the update strategy in force, which the last fragment that has one sets.
// Zincati reads its fragments when it starts, so a fragment that is newer than its process is an
// error.
// https://github.com/coreos/zincati/blob/main/docs/usage/configuration.md
func zincatiStrategy(ctx context.Context, on activeUnit) (string, error) {
	fragments, newest, err := zincatiFragments(on.root)
	if err != nil {
		return "", err
	}
	strategy := ""
	for _, name := range slices.SortedFunc(maps.Values(fragments), func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) }) {
		content, err := readConfiguration(on.root, name)
		if err != nil {
			return "", err
		}
		var fragment struct {
			Updates struct {
				Strategy *string `toml:"strategy"`
			} `toml:"updates"`
		}
		if _, err := toml.Decode(content, &fragment); err != nil {
			return "", fmt.Errorf("reading %s of the host: %w", name, err)
		}
		if set := fragment.Updates.Strategy; set != nil {
			strategy = *set
		}
	}
	if strategy != fleetLock {
		return strategy, nil // It conflicts even if it is not in force yet.
	}
	started, err := startOf(ctx, on.conn, on.unit)
	if err == nil && newest.After(started) {
		err = fmt.Errorf("its configuration has changed since it started at %s: systemctl restart %s", started.UTC().Format(time.RFC3339), zincatiUnit)
	}
	return strategy, err
}

// zincatiFragments returns the path of each fragment by its file name, and the time of the last
// change of any of them.
func zincatiFragments(root string) (fragments map[string]string, newest time.Time, err error) {
	fragments = map[string]string{}
	for _, folder := range zincatiFolders {
		names, err := configurationsIn(root, folder)
		if err != nil {
			return nil, time.Time{}, err
		}
		for _, name := range names {
			base := path.Base(name)
			if strings.HasPrefix(base, ".") || path.Ext(base) != ".toml" {
				continue
			}
			fragments[base] = name
		}
		for _, name := range append(names, folder) {
			if changed := changedAt(root, name); changed.After(newest) {
				newest = changed
			}
		}
	}
	return fragments, newest, nil
}

// changedAt returns the time of the last change of a file or folder on the host, or the zero time
// if it does not exist.
func changedAt(root, name string) time.Time {
	file, err := securejoin.SecureJoin(root, name)
	if err != nil {
		return time.Time{}
	}
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// startOf returns the start time of the main process of a service.
func startOf(ctx context.Context, conn *dbus.Conn, unit string) (time.Time, error) {
	value, err := property(ctx, conn, unit, systemdServiceInterface, "ExecMainStartTimestamp")
	if err != nil {
		return time.Time{}, err
	}
	micros, ok := value.Value().(uint64)
	if !ok {
		return time.Time{}, fmt.Errorf("reading ExecMainStartTimestamp of %s: %s instead of a number", unit, value.Signature())
	}
	return time.UnixMicro(int64(micros)), nil
}
