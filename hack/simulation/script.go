package simulation

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// Script is all that happens to a cluster, as a seed specifies. What the operator does about it is not in it.
type Script struct {
	Seed uint64
	// Begins is how long after the beginning of 2000 (UTC), which is when virtual time begins.
	Begins time.Duration
	// Faulty is how long things go wrong.
	Faulty time.Duration
	// Nodes are the names, with their labels; Pools those that a node may be in.
	Nodes    []NodeScript
	Pools    []string
	Policies []*v1alpha1.RebootPolicy
	// Faults happen at their times, in their order.
	Faults []Fault
	// Foul are the conditions while things go wrong.
	Foul process.Conditions
	// Drain is how long a drain takes at most, Stuck how probable it is that it never ends, or can't begin.
	Drain time.Duration
	Stuck float64
	// Boot is how long a machine is down at most.
	Boot time.Duration
	// Pass is how long a manager takes for a policy, Patience how often an agent that waits looks at its host.
	Pass, Patience time.Duration
}

// NodeScript is one machine.
type NodeScript struct {
	Name   string
	Labels map[string]string
}

// What is the kind of a fault.
type What string

// The faults: what administrators, machines and the world do.
const (
	StageUpdate What = "stage an update"
	// DeleteNode deletes a Node: a Number of 1 or 2 the Node alone, which its kubelet registers anew; else the machine goes too.
	// Another one comes instead, unless the Number is 5.
	DeleteNode   What = "delete a node"
	DeleteBusy   What = "delete a node in mid-drain or mid-reboot"
	DeletePolicy What = "delete a policy"
	// DeleteBusyPolicy deletes one that has grants under way.
	DeleteBusyPolicy What = "delete a policy in mid-rollout"
	// WipeStatus takes from a status what the API server lets go: all but its highest number and its limit. WipeBusyStatus takes
	// it from a policy with grants under way.
	WipeStatus     What = "wipe a status"
	WipeBusyStatus What = "wipe a status in mid-rollout"
	// JumpClock sets the clock of a machine wrong by For.
	JumpClock     What = "set a host's clock wrong"
	RequestReboot What = "request a reboot"
	CordonNode    What = "cordon"
	UncordonNode  What = "uncordon"
	Recordon      What = "uncordon and cordon again"
	Relabel       What = "move to another pool"
	PauseNode     What = "pause a node"
	ResumeNode    What = "end the pause of a node"
	LosePower     What = "power off"
	KillAgent     What = "kill the agent"
	KillManager   What = "kill a manager"
	FreezeManager What = "stop a manager"
	FreezeAgent   What = "stop an agent"
	Outage        What = "API server down"
	Compact       What = "compact"
	SetLimit      What = "change maxUnavailable"
	PausePolicy   What = "pause a policy"
	ResumePolicy  What = "end the pause of a policy"
	EndHalt       What = "end a halt"
	DryRun        What = "dry run"
	Enforce       What = "enforce"
)

// Fault happens to a node, a policy or a manager: Target is its number among its kind.
type Fault struct {
	At     time.Duration
	What   What
	Target int
	// For is how long it lasts, or how long until it is undone; Number what is set.
	For    time.Duration
	Number int
}
