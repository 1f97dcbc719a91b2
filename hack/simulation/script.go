package simulation

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// Script is everything that happens to a cluster, drawn from a seed, apart from what the operator
// does.
type Script struct {
	Seed uint64
	// Begins is the start, as a time after the beginning of 2000 (UTC), when virtual time begins.
	Begins time.Duration
	// Faulty is the period in which things go wrong.
	Faulty time.Duration
	// Nodes lists the nodes with their labels, and Pools the pools that they may be in.
	Nodes    []NodeScript
	Pools    []string
	Policies []*v1alpha1.RebootPolicy
	// Faults lists the faults in order of time.
	Faults []Fault
	// Foul holds the conditions while things go wrong.
	Foul process.Conditions
	// Drain is the maximum duration of a drain. Stuck is the probability that a drain never ends or
	// cannot begin.
	Drain time.Duration
	Stuck float64
	// Boot is the maximum time that a machine is down.
	Boot time.Duration
	// Pass is the time a manager takes for a policy. Patience is the interval at which a waiting
	// agent looks at its host.
	Pass, Patience time.Duration
}

// NodeScript is one machine.
type NodeScript struct {
	Name   string
	Labels map[string]string
}

// What is a kind of fault.
type What string

// The faults that administrators, machines and the environment cause.
const (
	StageUpdate What = "stage an update"
	// DeleteNode deletes a Node. With a Number of 1 or 2 the machine stays, and its kubelet
	// registers the Node again. Otherwise the machine goes too, and another one replaces it unless
	// the Number is 5.
	DeleteNode   What = "delete a node"
	DeleteBusy   What = "delete a node in mid-drain or mid-reboot"
	DeletePolicy What = "delete a policy"
	// DeleteBusyPolicy deletes a policy that has open grants.
	DeleteBusyPolicy What = "delete a policy in mid-rollout"
	// WipeStatus removes from a status what the API server allows to remove: everything except its
	// highest number and its limit. WipeBusyStatus does so to a policy with open grants.
	WipeStatus     What = "wipe a status"
	WipeBusyStatus What = "wipe a status in mid-rollout"
	// JumpClock moves the clock of a machine by For.
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

	// CloseBudget closes the budget of a pod on a node: an odd Number until the node is cordoned, an even one For a time.
	CloseBudget What = "close a budget"
	// Restore starts a machine from a snapshot of the boot before its last reboot.
	Restore What = "restore a machine to a snapshot"
	// KeepBootID makes the boots of a machine keep their ID from now on.
	KeepBootID What = "keep a boot ID"
	// LetNeedReturn makes a need come back after each boot, until the operator grants no more reboots for it.
	LetNeedReturn What = "let a need return"
	// FillAnnotations leaves no room in the annotations of a Node, until it shows a need in spite of
	// that.
	FillAnnotations What = "fill the annotations of a node"
	// StripGrants takes the grants of a Node out of the manager's writes, until one was withdrawn.
	StripGrants What = "strip the grants of a node"
)

// Fault is a fault of a node, a policy or a manager. Target is the index of that object.
type Fault struct {
	At     time.Duration
	What   What
	Target int
	// For is the duration, or the time until the fault is undone. Number is the value to set.
	For    time.Duration
	Number int
}
