package status

import (
	"fmt"
	"strings"

	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// manyNodes is the number of nodes from which one at a time would take too long.
const manyNodes = 20

// proposal returns a first policy for a cluster without one. The policy only reports. It is empty
// if there are no nodes.
func proposal(f fleet.Fleet) string {
	workers := 0
	for _, n := range f.Views() {
		if !n.ControlPlane {
			workers++
		}
	}
	name, selector, nodes := "nodes", "", len(f.Views())
	if workers > 0 && workers < nodes {
		name, nodes = "workers", workers
		selector = "  nodeSelector:\n    matchExpressions: [{key: " + record.ControlPlaneLabels[0] + ", operator: DoesNotExist}]\n"
	}
	most := "1"
	if nodes >= manyNodes {
		most = `"5%"`
	}
	if nodes == 0 {
		return ""
	}
	return fmt.Sprintf(`apiVersion: reboot-operator.io/v1alpha1
kind: RebootPolicy
metadata: {name: %s}
spec:
  mode: DryRun    # reports everything and reboots nothing; remove it to reboot
%s  concurrency: {maxUnavailable: %s}
`, name, selector, most)
}

// proposed formats the proposal as a command for people.
func proposed(s Status, l terminal.Look) []string {
	if s.Proposal == "" {
		return nil
	}
	lines := append([]string{"A first policy that fits this cluster:", "", l.Command("kubectl apply -f -") + " <<'EOF'"}, strings.Split(s.Proposal, "\n")...)
	lines[len(lines)-1] = "EOF"
	return lines
}
