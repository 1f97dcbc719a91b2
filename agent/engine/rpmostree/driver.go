package rpmostree

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/internal/pause"
)

const (
	// DefaultPeriod is how often it is worth looking for an upgrade.
	DefaultPeriod = time.Hour
	// DefaultLimit is what an upgrade gets: downloading an image over a slow line, and writing it to disk.
	DefaultLimit = time.Hour
	// clientID is who this is in rpm-ostree's journal.
	clientID = "reboot-operator"
)

// Driver makes rpm-ostree look for an upgrade, download and stage it, once in a period. It does nothing where the host
// does so itself, where another transaction is active or where a staged deployment is locked, and it changes no
// unit. That a deployment is staged is not its news: the Engine sees it.
type Driver struct {
	// Connect opens the system bus. Required.
	Connect host.Connect
	// Clock times the rounds and the deadline. Required.
	Clock clock.Clock
	// Period between two rounds; up to a tenth is added to each at random, so that hosts that started together do not ask
	// together. Required.
	Period time.Duration
	// Limit is how long a transaction may take before it is cancelled. Required.
	Limit time.Duration
	// HostRoot is where the host's file system is mounted: rpm-ostree serves its transactions in the host's /run, and bootc locks what
	// it has staged there. Empty: /, and no lock of bootc is known.
	HostRoot string
	// Hold is asked before each round; while it is true, none begins. Optional.
	Hold func() bool
	// Ended is called after each round. Optional.
	Ended func(Round)
	// Malformed is called for each signal of a transaction that cannot be read and is ignored. Optional.
	Malformed func()
}

// Run drives until ctx ends. A transaction that is under way then is cancelled: without its driver it
// would have no deadline. What goes wrong is reported, and tried again in the next round.
func (d *Driver) Run(ctx context.Context) {
	var last Round
	for wait := rand.N(d.Period/10 + 1); pause.For(ctx, d.Clock, wait); wait = d.Period + rand.N(d.Period/10+1) {
		round, err := d.try(ctx)
		if err != nil {
			round = Round{Outcome: OutcomeFailed, Err: err}
		}
		if ctx.Err() != nil {
			logr.FromContextOrDiscard(ctx).Info("Stopped looking for upgrades", "reason", fmt.Sprint(round.Err))
			return
		}
		d.logRound(ctx, round, last)
		last = round
	}
}

// logRound logs how a round ended: what is new at level 0.
func (d *Driver) logRound(ctx context.Context, round, last Round) {
	log := logr.FromContextOrDiscard(ctx)
	if round.Outcome == last.Outcome && round.Version == last.Version {
		log = log.V(1)
	}
	switch round.Outcome {
	case OutcomeFailed:
		logr.FromContextOrDiscard(ctx).Error(round.Err, "Upgrade of the host failed")
	case OutcomeStaged:
		log.Info("Staged an upgrade of the host", "version", round.Version)
	case OutcomeUpToDate:
		log.Info("Found no upgrade of the host")
	case OutcomeLeftToHost:
		log.Info("Left upgrades to rpm-ostreed-automatic.timer, as the host's AutomaticUpdatePolicy sets", "policy", round.Policy)
	default:
		log.Info("Left the host alone", "reason", string(round.Outcome))
	}
	if d.Ended != nil {
		d.Ended(round)
	}
}

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
	// OutcomeBusy means nothing was done because another transaction is active, or nothing came of it because another
	// client was faster.
	OutcomeBusy Outcome = "Busy"
	// OutcomeLocked means nothing was done because a deployment is staged and locked: another program, such as Zincati,
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
