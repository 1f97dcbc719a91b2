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
	// renewedWithin is the maximum age of the Lease of a running manager. It renews the Lease every
	// two seconds, by a clock that may differ from ours.
	renewedWithin = time.Minute
	// releasedWithin is the maximum time without a holder of the Lease. Another manager takes over
	// within seconds.
	releasedWithin = 10 * time.Second
)

// Manager is the state of the manager as its Lease shows it.
type Manager struct {
	known   bool
	unread  error
	holder  string
	renewed time.Time
}

// ManagerOf evaluates the Leases with the manager's name. The latest one counts. err is the error
// of reading them.
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

// Trouble says that no manager runs, or that this is unknown, and what follows from it. It is empty
// if a manager runs, or if the Lease was not read.
func (m Manager) Trouble(now time.Time) string {
	const follows = ": no reboot begins, and no node comes back into service by itself"
	switch age := now.Sub(m.renewed); {
	case !m.known:
		return ""
	case m.unread != nil:
		return fmt.Sprintf("it is unknown whether a manager runs: %s", m.unread)
	case age < -renewedWithin:
		return "it is unknown whether a manager runs: its Lease was renewed at " + timing.Instant(m.renewed) +
			", which is in the future; compare the clocks with kubectl reboot doctor"
	case m.renewed.IsZero():
		return "no manager runs (Lease " + ManagerLease + " does not exist)" + follows
	case m.holder == "" && age > releasedWithin, age > renewedWithin:
		return "no manager has run since " + timing.Instant(m.renewed) + follows
	}
	return ""
}

// Down reports whether no manager runs. It is false if that is unknown.
func (m Manager) Down(now time.Time) bool {
	return m.unread == nil && !m.renewed.After(now) && m.Trouble(now) != ""
}
