package plan

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/ledger"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/report"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Snapshot is everything that a decision about one policy reads, taken at one instant.
type Snapshot struct {
	Now time.Time
	// Policy is the policy to decide about. Its status is the ledger as last read.
	Policy *v1alpha1.RebootPolicy
	// Ledger is the ledger that counts for the policy.
	Ledger ledger.Ledger
	// Governor knows every policy of the cluster.
	Governor governor.Governor
	// Nodes are all nodes of the cluster, in any order: a node in the ledger may be governed by
	// another policy now. They are shared with other snapshots, so do not change them.
	Nodes []*record.Node
	// Window is the state of the policy's windows at Now.
	Window window.State
	// Schedule returns the state of the windows at any other time. Only forecasts use it.
	Schedule window.Schedule
	// WindowInvalid says what is wrong with windows or blackouts. If it is set, nothing is granted.
	WindowInvalid string
	// GatesInvalid names the expression of gates.objects that does not compile. If it is set,
	// nothing is granted.
	GatesInvalid string
	// Gates are the last results of the policy's gates. A gate is missing if it was not queried
	// lately.
	Gates []v1alpha1.GateStatus
	// Agents are the pods of the agents, or nil if they have not been read yet.
	Agents *report.Agents
	// Refused are the writes about granted reboots that the API server refused last, by node.
	Refused map[string]underway.Refusal
	// RebootInterval is the least time between a node's return to service and its next grant. 0
	// means no limit.
	RebootInterval time.Duration
	// Unread are the nodes that could not be read live. They keep their slots, because an entry is
	// released only after a live reading.
	Unread map[string]bool
}

// instant formats a time for status messages, in the time zone of the policy's first window.
func (s Snapshot) instant(t time.Time) string { return timing.InstantIn(t, s.Schedule.Zone()) }
