package rpmostree

// Outcome is how a round of the Driver ended.
type Outcome string

const (
	// OutcomeStaged means a deployment waits for a reboot: the Engine reports it.
	OutcomeStaged Outcome = "Staged"
	// OutcomeUpToDate means there is no upgrade.
	OutcomeUpToDate Outcome = "UpToDate"
	// OutcomeLeftToHost means nothing was done because the host stages updates itself: rpm-ostree's AutomaticUpdatePolicy
	// is stage or apply. That is its administrator's choice.
	OutcomeLeftToHost Outcome = "LeftToHost"
	// OutcomeBusy means nothing was done because another transaction is active, or nothing came of it because somebody
	// else was faster.
	OutcomeBusy Outcome = "Busy"
	// OutcomeLocked means nothing was done because a deployment is staged and locked: somebody else, such as Zincati,
	// drives this host, and an upgrade would replace it.
	OutcomeLocked Outcome = "Locked"
	// OutcomeHeld means nothing was done because Hold required it.
	OutcomeHeld Outcome = "Held"
	// OutcomeAbsent means nothing was done because there is no rpm-ostree on this host.
	OutcomeAbsent Outcome = "Absent"
	// OutcomeFailed means rpm-ostree could not be asked, or the upgrade failed. The next round tries again.
	OutcomeFailed Outcome = "Failed"
)

// Round is what the Driver reports of a round.
type Round struct {
	// Outcome is how it ended.
	Outcome Outcome
	// Version that waits for a reboot, with OutcomeStaged. Empty: unknown.
	Version string
	// Policy is rpm-ostree's AutomaticUpdatePolicy, with OutcomeLeftToHost: valid UTF-8 of at most 32 bytes.
	Policy string
	// Err states what went wrong, with OutcomeFailed.
	Err error
}
