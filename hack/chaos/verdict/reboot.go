package verdict

import "fmt"

// rebootsPerNeed: each need of a machine is answered by exactly one reboot, under a grant that names the boot it ended.
func rebootsPerNeed(h History) []Violation {
	var found []Violation
	committed := map[string]bool{} // boots that an agent was past the point of no return to end
	for _, r := range h.Revisions {
		if r.Node != nil {
			if a := attemptOf(r.Node); a.committed {
				committed[a.boot] = true
			}
		}
	}
	waits := map[int]bool{}
	for _, e := range h.Machines {
		switch e.What {
		case Needs:
			waits[e.Machine] = true
		case Leaves:
			delete(waits, e.Machine)
		case Reboots:
			if !waits[e.Machine] {
				found = append(found, Violation{0, "a reboot without a need", fmt.Sprintf("machine %d, node %s, ended boot %s once more than it needed", e.Machine, e.Node, e.Boot)})
			}
			if !committed[e.Boot] {
				found = append(found, Violation{0, "a reboot without a grant", fmt.Sprintf("machine %d, node %s, ended boot %s, which no record of a grant names", e.Machine, e.Node, e.Boot)})
			}
			delete(waits, e.Machine)
		}
	}
	for machine := range waits {
		found = append(found, Violation{0, "a need without a reboot", fmt.Sprintf("machine %d was never rebooted", machine)})
	}
	return found
}
