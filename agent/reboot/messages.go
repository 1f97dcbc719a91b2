package reboot

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// maxNamed is how many pods or inhibitors a message names.
const maxNamed = 3

// notRead is reported of a drain that does not know yet which pods there are.
const notRead = "The node's pods have not been read yet."

// unreadable states why a drain does not know yet which pods there are.
func unreadable(why string) string {
	return engine.Shorten(fmt.Sprintf("The node's pods could not be read: %s.", why))
}

// remaining states which pods a drain waits for: where none is in the way by itself, those that take longest.
func remaining(status drain.Status) string {
	left := message.Count(status.Remaining, "pod is", "pods are") + " left on the node"
	if len(status.Blocked) > 0 {
		left += "; in the way: " + message.List(status.Blocked, maxNamed, describe)
	} else if len(status.Left) > 0 {
		left += ": " + message.List(status.Left, maxNamed, describe)
	}
	if stay := staying(status.Back); stay != "" {
		left += "; " + stay
	}
	return engine.Shorten(left + ".")
}

// staying names pods that the drain leaves on the node because they come back. Empty: there is none.
func staying(back []drain.Pod) string {
	if len(back) == 0 {
		return ""
	}
	return "staying: " + message.List(back, maxNamed, describe)
}

// pods names pods and states why each is in the way.
func pods(blocked []drain.Pod) string { return list(blocked, describe) }

// describe names a pod, and states what is known of it.
func describe(p drain.Pod) string {
	name := p.Namespace + "/" + p.Name
	if p.Message == "" {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, p.Message)
}

// maxHeld bounds, in bytes, what a condition reports of the pods in the way, so that its message has room for the deadline.
const maxHeld = 512

// held names the pods in the way of a drain and what holds each. It leaves out what changes while the pods are the same, such as how
// many pods of a PodDisruptionBudget are healthy. Each change is a write.
func held(blocked []drain.Pod) string {
	return message.Shorten(maxHeld, message.List(blocked, maxNamed, func(p drain.Pod) string {
		why := p.Reason
		if p.Budgets != "" {
			why = "PodDisruptionBudget " + p.Budgets
		}
		return fmt.Sprintf("%s/%s (%s)", p.Namespace, p.Name, why)
	}))
}

// inhibited names who blocks a shutdown, always in the same order. Empty: none does.
func inhibited(blocking []host.Inhibitor) string {
	if len(blocking) == 0 {
		return ""
	}
	slices.SortFunc(blocking, func(a, b host.Inhibitor) int { return strings.Compare(a.Who+a.Why, b.Who+b.Why) })
	who := list(slices.Compact(blocking), func(i host.Inhibitor) string { return fmt.Sprintf("%s (%s)", i.Who, i.Why) })
	return engine.Shorten("A shutdown of the host is blocked by " + who)
}

// refuses says why logind would not reboot the host even if inhibitors are ignored. It is empty if
// logind would.
func refuses(why string) string {
	if why == "" {
		return ""
	}
	return engine.Shorten(fmt.Sprintf("Logind would refuse the reboot, also with reboot.inhibitors: Ignore: %s.", why))
}

// unasked states why it is unknown who blocks a shutdown, in the same text each time for the same cause. A refusal's own text names the
// connection, which is new with each look, and each change is a write to the Node.
func unasked(err error) string {
	why := err.Error()
	switch name := host.ErrorName(err); {
	case errors.Is(err, host.ErrTooLarge):
		why = "the list of inhibitors is larger than 1 MiB. Look at systemd-inhibit --list on the host, and end the programs that hold them"
	case name != "":
		why = "logind answers " + name
	}
	return engine.Shorten(fmt.Sprintf("logind cannot be asked who blocks a shutdown: %s.", why))
}

// maxRival is the largest message about a program that may reboot the host, in bytes. It leaves
// room for the command that turns the program off, because a command that is cut off does not help.
const maxRival = 384

// rival names what else may reboot the host, or states that it is unknown. Empty: nothing else.
func rival(other *host.Coordinator, err error) string {
	switch {
	case other == nil && err == nil:
		return ""
	case other == nil:
		return engine.Shorten(fmt.Sprintf("It is unknown whether another program may reboot this host. Fix the cause, %s. The cause: %v.", v1alpha1.CoordinatorAdvice, err))
	case !other.At.IsZero():
		return engine.Shorten(fmt.Sprintf("A shutdown of this host (%s) is scheduled for %s%s: shutdown -c on the host, %s.",
			other.Name, timing.Instant(other.At), by(other.By), v1alpha1.CoordinatorAdvice))
	case other.Unit != "":
		off := cmp.Or(other.Off, "systemctl mask --now "+other.Unit)
		return message.Shorten(maxRival, fmt.Sprintf("%s is active on this host and may reboot it at any time: %s on the host, %s.",
			other.Name, off, v1alpha1.CoordinatorAdvice))
	}
	name := other.Name
	if name == "" {
		name = "A program without a readable NAME"
	}
	return engine.Shorten(fmt.Sprintf("%s holds /run/update-engine/coordinator.conf on this host and may reboot it at any time: stop that, %s.",
		name, v1alpha1.CoordinatorAdvice))
}

// by names who scheduled a shutdown. Empty: unknown.
func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + who
}

// list makes one sentence's end of things, at most a few of them by name.
func list[T any](things []T, name func(T) string) string {
	return engine.Shorten(message.List(things, maxNamed, name) + ".")
}
