package governor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/internal/message"
)

// ConflictMessage returns the message of a node that several policies select with the same
// priority.
func ConflictMessage(rivals []string) string {
	return fmt.Sprintf("policies %s select the node with the same priority; raise spec.priority of one", strings.Join(rivals, ", "))
}

// Conflict holds the nodes that the same policies select with the same priority.
type Conflict struct {
	Policies, Nodes []string
	// Pending are those of Nodes that need a reboot.
	Pending []string
}

// Message says which nodes are not rebooted, and how many of them need a reboot.
func (c Conflict) Message() string {
	return fmt.Sprintf("%s not rebooted (%s a reboot): policies %s select %s with the same priority; raise spec.priority of one",
		message.Count(len(c.Nodes), "node is", "nodes are"), message.Count(len(c.Pending), "needs", "need"), strings.Join(c.Policies, ", "), message.Some(c.Nodes))
}

// Conflicts groups nodes in a conflict by their policies. rivals holds those policies by node, and
// needs reports whether a node needs a reboot.
func Conflicts(rivals map[string][]string, needs func(node string) bool) []Conflict {
	var all []Conflict
	for _, name := range slices.Sorted(maps.Keys(rivals)) {
		i := slices.IndexFunc(all, func(c Conflict) bool { return slices.Equal(c.Policies, rivals[name]) })
		if i < 0 {
			i, all = len(all), append(all, Conflict{Policies: rivals[name]})
		}
		all[i].Nodes = append(all[i].Nodes, name)
		if needs(name) {
			all[i].Pending = append(all[i].Pending, name)
		}
	}
	return all
}
