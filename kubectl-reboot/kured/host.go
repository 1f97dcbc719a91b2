package kured

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// sentinelEngine says that the agent detects the need that kured found in a file or by a command.
const sentinelEngine = "the agent's engine sentinel watches it"

// watchedFiles lists the host's files that the sentinel engine watches by default.
var watchedFiles = []string{"/run/reboot-required", "/run/reboot-needed"}

// detect reports how the need for a reboot is detected. The agent does this here, so a policy has
// no field for it.
func detect(c *conversion) error {
	command := c.flags.sentinelCommand
	if command == "" {
		c.unneeded("reboot-sentinel-command", "it is empty: kured looks for a file")
		carrySentinel(c, "reboot-sentinel", hostPath(c, c.flags.sentinel))
		return nil
	}
	c.unneeded("reboot-sentinel", "kured does not look at it with a --reboot-sentinel-command")
	if tested, found := testedFile(command); found {
		carrySentinel(c, "reboot-sentinel-command", tested)
		return nil
	}
	c.note(&c.report.open, "reboot-sentinel-command", "no command is run. Let the host run it with a systemd timer, and touch /run/reboot-required if it asks for a reboot: "+sentinelEngine)
	return nil
}

func carrySentinel(c *conversion, flag, file string) {
	if file = path.Clean(file); strings.HasPrefix(file, "/var/run/") { // a link to /run
		file = strings.TrimPrefix(file, "/var")
	}
	if slices.Contains(watchedFiles, file) {
		c.carried(flag, "the host's "+file+": "+sentinelEngine)
		return
	}
	c.note(&c.report.open, flag, "the host's "+file+": start the agents with --sentinel-file="+file+", which replaces "+strings.Join(watchedFiles, " and ")+
		". The host's folder of the file has to be mounted below --host-root; /run, /etc and /usr are")
}

// testedFile returns the file of a command that only tests whether a file exists, as kured's
// default once did.
func testedFile(command string) (string, bool) {
	args := strings.Fields(command)
	if len(args) == 3 && path.Base(args[0]) == "test" && (args[1] == "-f" || args[1] == "-e") {
		return args[2], true
	}
	return "", false
}

// hostPath converts a path in the container to the host's path. Paths outside of all mounts are
// assumed to be the same on the host.
func hostPath(c *conversion, file string) string {
	mounts := slices.Clone(c.kured.container.VolumeMounts)
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return len(b.MountPath) - len(a.MountPath) })
	for _, mount := range mounts {
		inside, found := strings.CutPrefix(path.Clean(file), path.Clean(mount.MountPath)+"/")
		if !found {
			continue
		}
		for _, volume := range c.kured.daemonSet.Spec.Template.Spec.Volumes {
			if volume.Name == mount.Name && volume.HostPath != nil {
				return path.Join(volume.HostPath.Path, mount.SubPath, inside)
			}
		}
	}
	return file
}

const byLogind = "logind reboots the host, over D-Bus"

// reboot converts the method of the reboot. kured runs a command on the host, or sends a signal to
// its first process.
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
	c.unconverted("reboot-command", byLogind+". Move whatever else the command does to a systemd unit that is ordered before the shutdown, or to a hook in hooks.before")
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
