package rpmostree

import (
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/internal/message"
)

// errNotBooted is a host whose running system is none of rpm-ostree's.
var errNotBooted = errors.New("rpm-ostree names no system that this host was booted from")

// maxPolicyBytes is several times what any policy has; an unknown one is passed on.
const maxPolicyBytes = 32

// sysroot is what the Driver has to know before it does something.
type sysroot struct {
	// booted is the object of the operating system that runs.
	booted dbus.ObjectPath
	// policy is AutomaticUpdatePolicy: what rpm-ostreed-automatic.timer does.
	policy string
	// transaction is the method of the active one. Empty: none is.
	transaction string
	// deployments in boot order.
	deployments []deployment
}

// objection states why nothing may be done now, if something prevents it. An unknown policy does: whatever it is, the
// host has one.
func (s sysroot) objection() (Round, bool) {
	switch s.policy {
	case "", "none", "off", "check":
	default:
		return Round{Outcome: OutcomeLeftToHost, Policy: s.policy}, true
	}
	switch {
	case s.transaction != "":
		return Round{Outcome: OutcomeBusy}, true
	case len(s.deployments) > 0 && s.deployments[0].locked:
		return Round{Outcome: OutcomeLocked}, true
	}
	return Round{}, false
}

// result is how a round ended that ran an upgrade without an error.
func (s sysroot) result() Round {
	if len(s.deployments) > 0 && !s.deployments[0].booted {
		return Round{Outcome: OutcomeStaged, Version: s.deployments[0].version}
	}
	return Round{Outcome: OutcomeUpToDate}
}

// decodeSysroot reads the properties. All have to be there: what is not known may prevent doing anything.
func decodeSysroot(values map[string]dbus.Variant) (sysroot, error) {
	booted, bootedOK := values["Booted"].Value().(dbus.ObjectPath)
	policy, policyOK := values["AutomaticUpdatePolicy"].Value().(string)
	transaction, transactionOK := values["ActiveTransaction"].Value().([]any)
	if !bootedOK || !policyOK || !transactionOK || len(transaction) != 3 {
		return sysroot{}, fmt.Errorf("%w: Booted, AutomaticUpdatePolicy or ActiveTransaction", errMalformed)
	}
	method, methodOK := transaction[0].(string)
	if !methodOK {
		return sysroot{}, fmt.Errorf("%w: ActiveTransaction", errMalformed)
	}
	deployments, _, err := decodeDeployments(values["Deployments"])
	if err != nil {
		return sysroot{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if !booted.IsValid() || booted == "/" {
		return sysroot{}, errNotBooted
	}
	return sysroot{booted: booted, policy: message.Shorten(maxPolicyBytes, policy), transaction: method, deployments: deployments}, nil
}
