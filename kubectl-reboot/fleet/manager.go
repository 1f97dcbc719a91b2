package fleet

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// ManagerLease is the name of the Lease that the leading manager holds, in the manager's namespace.
const ManagerLease = "reboot-operator-manager"

const (
	// renewedWithin is how old the last renewal of a manager that runs may be. It renews every two
	// seconds, by a clock that may differ from ours.
	renewedWithin = time.Minute
	// releasedWithin is how long no manager may hold the Lease: another one takes over within
	// seconds.
	releasedWithin = 10 * time.Second
)

// Manager is what the Lease says about the manager.
type Manager struct {
	known   bool
	unread  error
	holder  string
	renewed time.Time
}

// ManagerOf reads the Leases of that name, of which the latest counts. An error is why they could
// not be read.
func ManagerOf(leases []coordinationv1.Lease, err error) Manager {
	m := Manager{known: true, unread: err}
	for _, lease := range leases {
		if renewed := lease.Spec.RenewTime; renewed != nil && renewed.After(m.renewed) {
			m.renewed, m.holder = renewed.Time, ""
			if lease.Spec.HolderIdentity != nil {
				m.holder = *lease.Spec.HolderIdentity
			}
		}
	}
	return m
}

// Trouble says that no manager runs, or that nobody knows, and what follows from it. It is empty if
// a manager runs, or if the Lease was not looked at.
func (m Manager) Trouble(now time.Time) string {
	const follows = ": no reboot begins, and no node comes back into service by itself"
	switch age := now.Sub(m.renewed); {
	case !m.known:
		return ""
	case m.unread != nil:
		return fmt.Sprintf("whether a manager runs is not known: %s", m.unread)
	case m.renewed.IsZero():
		return "no manager runs, as there is no Lease " + ManagerLease + follows
	case m.holder == "" && age > releasedWithin, age > renewedWithin:
		return "no manager has run since " + timing.Instant(m.renewed) + follows
	}
	return ""
}

// Down reports whether no manager runs, as far as is known.
func (m Manager) Down(now time.Time) bool { return m.unread == nil && m.Trouble(now) != "" }
