package host

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/internal/message"
)

// scheduledShutdown is the property of logind that shows what `shutdown` has scheduled, for example
// for unattended-upgrades or dnf-automatic.
const scheduledShutdown = "ScheduledShutdown"

// scheduledFile is logind's record of the schedule. It names who scheduled it.
const scheduledFile = "/run/systemd/shutdown/scheduled"

// shutdowns are the types of shutdown that stop the host or everything that runs on it.
var shutdowns = []string{"poweroff", "reboot", "halt", "kexec", "soft-reboot"}

// scheduled returns the scheduled shutdown. It returns nil without a schedule or without logind.
func scheduled(ctx context.Context, conn *dbus.Conn, root string) (*Coordinator, error) {
	callCtx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	var value dbus.Variant
	call := conn.Object(logindName, logindPath).CallWithContext(callCtx, propertiesInterface+".Get", dbus.FlagNoAutoStart, logindInterface, scheduledShutdown)
	err := call.Store(&value)
	switch {
	case NoOwner(err):
		return nil, nil
	case err != nil:
		return nil, answered("logind", err)
	}
	var state struct {
		Type string
		USec uint64
	}
	if err := dbus.Store([]any{value.Value()}, &state); err != nil {
		return nil, fmt.Errorf("%s instead of a type and a time", value.Signature())
	}
	// Without a schedule the time is the largest number, or zero if an action was carried out at
	// once. A dry run, dry-…, only warns.
	if !slices.Contains(shutdowns, state.Type) || state.USec == 0 || state.USec > math.MaxInt64 {
		return nil, nil
	}
	return &Coordinator{Name: state.Type, At: time.UnixMicro(int64(state.USec)).UTC(), By: scheduledBy(root)}, nil
}

// maxByBytes limits the length of the message to all users that is reported.
const maxByBytes = 64

// scheduledBy returns who scheduled the shutdown, as far as the file says. Systemd before 256 does
// not write the UID.
func scheduledBy(root string) string {
	content, err := readBelow(root, scheduledFile)
	if err != nil {
		return "" // The property already shows the shutdown, so the file is optional.
	}
	values := parseAssignments(content)
	var by []string
	if uid := values["UID"]; uid != "" && strings.Trim(uid, "0123456789") == "" {
		by = append(by, "uid "+uid[:min(len(uid), 10)])
	}
	if tty := LabelValue(values["TTY"]); tty != "" {
		by = append(by, "on "+tty)
	}
	if text := values["WALL_MESSAGE"]; text != "" {
		by = append(by, fmt.Sprintf("%q", message.Shorten(maxByBytes, text)))
	}
	return strings.Join(by, " ")
}
