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

// maxNamed is the largest number of pods or inhibitors that a message names.
const maxNamed = 3

// notRead is the message of a drain that has not listed the pods yet.
const notRead = "The node's pods have not been read yet."

// unreadable returns the message of a drain that could not list the pods.
func unreadable(why string) string {
	return engine.Shorten(fmt.Sprintf("The node's pods could not be read: %s.", why))
}

// remaining names the pods that a drain waits for. If no pod blocks it, these are the pods that
// take longest to terminate.
func remaining(status drain.Status) string {
	pods := message.Count(status.Remaining, "pod is", "pods are") + " left on the node"
	if len(status.Blocked) > 0 {
		pods += "; in the way: " + message.List(status.Blocked, maxNamed, describe)
	} else if len(status.Left) > 0 {
		pods += ": " + message.List(status.Left, maxNamed, describe)
	}
	if stay := staying(status.Back); stay != "" {
		pods += "; " + stay
	}
	return engine.Shorten(pods + ".")
}

// staying names pods that stay on the node because they come back. It is empty without such pods.
func staying(back []drain.Pod) string {
	if len(back) == 0 {
		return ""
	}
	return "staying: " + message.List(back, maxNamed, describe)
}

// pods names pods and says why each of them is in the way.
func pods(blocked []drain.Pod) string { return list(blocked, describe) }

// describe names a pod and adds its message.
func describe(p drain.Pod) string {
	name := p.Namespace + "/" + p.Name
	if p.Message == "" {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, p.Message)
}

// maxHeld limits the part of a condition about the pods that hold up a drain, in bytes, so that its
// message has room for the deadline.
const maxHeld = 512

// held names the pods that hold up a drain and what holds each of them. It leaves out details that
// change for the same pods, such as the number of healthy pods of a PodDisruptionBudget, because
// each change costs a write.
func held(blocked []drain.Pod) string {
	return message.Shorten(maxHeld, message.List(blocked, maxNamed, func(p drain.Pod) string {
		why := p.Reason
		if p.Budgets != "" {
			why = "PodDisruptionBudget " + p.Budgets
		}
		return fmt.Sprintf("%s/%s (%s)", p.Namespace, p.Name, why)
	}))
}

// inhibited names who blocks a shutdown, always in the same order. It is empty without inhibitors.
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

// unasked says why inhibitors are unknown, with the same text for the same cause. The text of a
// refusal names the connection, which is a new one for each call, and each change costs a write to
// the Node.
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

// loggedIn names the people who are logged in, or says that they are unknown. It is empty if there are
// none.
func loggedIn(sessions []host.Login, err error) string {
	switch {
	case err != nil:
		why := err.Error()
		if name := host.ErrorName(err); name != "" {
			why = "logind answers " + name
		}
		return engine.Shorten(fmt.Sprintf("It is unknown who is logged in on the host: %s.", why))
	case len(sessions) == 0:
		return ""
	}
	slices.SortFunc(sessions, func(a, b host.Login) int {
		return strings.Compare(a.User+a.Terminal+a.From, b.User+b.Terminal+b.From)
	})
	return engine.Shorten("People are logged in on the host: " + list(sessions, func(s host.Login) string {
		where := cmp.Or(s.Terminal, "no terminal")
		if s.From != "" {
			where += " from " + s.From
		}
		return fmt.Sprintf("%s (%s)", s.User, where)
	}))
}

// maxRival is the largest message about a program that may reboot the host, in bytes. It leaves
// room for the command that turns the program off, because a command that is cut off does not help.
const maxRival = 384

// rival names what else may reboot the host, or says that it is unknown. It is empty if nothing
// else may.
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

// by names who scheduled a shutdown. It is empty if that is unknown.
func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + who
}

// list joins the names of at most a few things and ends the sentence.
func list[T any](things []T, name func(T) string) string {
	return engine.Shorten(message.List(things, maxNamed, name) + ".")
}
