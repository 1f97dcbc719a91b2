package kured

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

const byLogind = "logind reboots the host, over D-Bus"

// reboot: kured runs a command on the host or sends a signal to its first process.
func reboot(c *conversion) error {
	switch c.flags.rebootMethod {
	case "command":
		rebootCommand(c)
		c.unneeded("reboot-signal", "kured sends it with --reboot-method=signal only")
	case "signal":
		rebootSignal(c)
		c.unneeded("reboot-command", "kured runs it with --reboot-method=command only")
	default:
		return fmt.Errorf("--reboot-method %q is neither command nor signal, and kured does not start with it", c.flags.rebootMethod)
	}
	c.unneeded("reboot-method", byLogind)
	return nil
}

func rebootCommand(c *conversion) {
	if isPlainReboot(c.flags.rebootCommand) {
		c.unneeded("reboot-command", byLogind)
		return
	}
	c.unconverted("reboot-command", byLogind+". What else the command does belongs into a systemd unit that is ordered before the shutdown, or into a hook in hooks.before")
}

func isPlainReboot(command string) bool {
	args := strings.Fields(command)
	if len(args) == 0 {
		return false
	}
	args[0] = path.Base(args[0])
	return slices.ContainsFunc([][]string{{"systemctl", "reboot"}, {"reboot"}, {"shutdown", "-r", "now"}}, func(plain []string) bool {
		return slices.Equal(args, plain)
	})
}

func rebootSignal(c *conversion) {
	if c.flags.rebootSignal == signalReboot {
		c.unneeded("reboot-signal", byLogind)
		return
	}
	c.unconverted("reboot-signal", byLogind+". Signal 39, SIGRTMIN+5, asks systemd for the same; another one asks for something else, such as a power-off, which this operator never does")
}
