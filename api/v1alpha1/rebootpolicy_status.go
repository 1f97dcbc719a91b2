package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FirstYear and LastYear bound the times of records: a clock that shows an earlier year was never set, and JSON cannot write a
// later one.
const FirstYear, LastYear = 2000, 9999

// RebootPolicyStatus is what the manager observed, decided and granted.
// Only the manager writes it, always with the resourceVersion that it read.
// The ledger in it (limit, seq, grants) keeps two leaders from exceeding the limit.
type RebootPolicyStatus struct {
	// conditions are Accepted, WindowOpen, Progressing, Halted, AgentsReady and DeadlineNear.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// mode is spec.mode as it is in force:
	// - Enforce: grants reboots.
	// - DryRun: decides and reports everything, and grants nothing.
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// nodes counts the nodes of this policy.
	// +optional
	Nodes NodeCounts `json:"nodes,omitempty,omitzero"`

	// agents counts the agents that work.
	// Absent: not known yet.
	// +optional
	Agents *AgentsStatus `json:"agents,omitempty"`

	// blocked states why nodes wait, by reason: those that need an action first, then the most frequent.
	// +optional
	// +listType=map
	// +listMapKey=reason
	// +kubebuilder:validation:MaxItems=32
	Blocked []BlockedNodes `json:"blocked,omitempty"`

	// versions states which versions of their operating systems the nodes run, as their agents label them.
	// Systems with the most nodes come first, at most 8.
	// Absent: no node has labels os-id and os-version.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Versions []SystemVersions `json:"versions,omitempty"`

	// limit is maxUnavailable in nodes: with concurrency.shared, the smaller one of that policy's and its own.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Limit int32 `json:"limit"`

	// seq is the highest sequence number of any grant ever given.
	// It never shrinks.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Seq int64 `json:"seq,omitempty"`

	// grants is the ledger: one entry for each reboot that was granted and is not finished.
	// Policies with concurrency.shared have theirs in the ledger of the policy that they name.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=1000
	Grants []LedgerEntry `json:"grants,omitempty"`

	// run is the run in progress.
	// A run lasts from the first grant until no node holds a grant and none may be granted.
	// With hooks.runBefore or hooks.runAfter it also lasts while these are asked, and through soaks, spacing and gates.
	// Absent: no run is in progress.
	// +optional
	Run *RunStatus `json:"run,omitempty"`

	// window is the state of the windows.
	// +optional
	Window *WindowStatus `json:"window,omitempty"`

	// gates are what the gates of gates.prometheus and gates.objects reported last.
	// Absent: no node waits for them, so they are not asked.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=40
	Gates []GateStatus `json:"gates,omitempty"`

	// lastRebootAt is when the last reboot was confirmed.
	// Absent: none yet.
	// +optional
	LastRebootAt *metav1.Time `json:"lastRebootAt,omitempty"`

	// history is how the last reboots of this policy ended, the newest last: at most 20, and fewer where they are long.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	History []PastReboot `json:"history,omitempty"`

	// estimatedCompletionAt is when the last pending node is expected back, from windows, the limit and how long reboots took so far.
	// Nodes that wait for a person or another system are left out.
	// It is as old as the last write of this status.
	// Absent: nothing is pending, or unknown.
	// +optional
	EstimatedCompletionAt *metav1.Time `json:"estimatedCompletionAt,omitempty"`
}

// NodeCounts counts the nodes of a policy.
type NodeCounts struct {
	// selected nodes are governed by this policy.
	// +required
	Selected int32 `json:"selected"`
	// reporting nodes have an agent that knows whether a reboot is needed.
	// +required
	Reporting int32 `json:"reporting"`
	// rebootRequired nodes need a reboot.
	// +required
	RebootRequired int32 `json:"rebootRequired"`
	// granted nodes have an entry in the ledger: a grant, or hooks before it that are asked.
	// +required
	Granted int32 `json:"granted"`
	// rebooting nodes hold a grant and have passed the point of no return.
	// +required
	Rebooting int32 `json:"rebooting"`
	// blocked nodes need a reboot and may not now.
	// +required
	Blocked int32 `json:"blocked"`
	// unavailable nodes use up maxUnavailable: granted, not Ready, cordoned by others or being deleted.
	// +required
	Unavailable int32 `json:"unavailable"`
	// failed nodes have a failed attempt and still need the reboot, or are overdue in a granted one.
	// +required
	Failed int32 `json:"failed"`
	// overdue nodes have needed a reboot for longer than spec.deadline.
	// Absent: none has, or there is no deadline.
	// +optional
	Overdue int32 `json:"overdue,omitempty"`
}

// AgentsStatus counts the agents that work: those that have reported whether their node needs a reboot, and whose pod is Ready.
type AgentsStatus struct {
	// summary is ready and desired as one text, such as 38/40.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Summary string `json:"summary"`
	// desired is how many nodes this policy governs: each should have an agent.
	// +required
	Desired int32 `json:"desired"`
	// ready is how many of them have an agent that works.
	// +required
	Ready int32 `json:"ready"`
	// missing is how many have none although the node is in service.
	// A node that is being rebooted is not among them.
	// +required
	Missing int32 `json:"missing"`
	// nodes names at most five of those.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Nodes []string `json:"nodes,omitempty"`
}

// BlockedNodes states why nodes wait.
type BlockedNodes struct {
	// reason is the one of the nodes' condition RebootPermitted.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason Reason `json:"reason"`
	// count is how many nodes wait for this reason.
	// +required
	Count int32 `json:"count"`
	// nodes names at most five of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Nodes []string `json:"nodes,omitempty"`
}

// SystemVersions states which versions of one operating system the nodes of a policy run.
// Nodes of another update channel are counted apart.
type SystemVersions struct {
	// os is label os-id of the nodes, such as flatcar.
	// +required
	// +kubebuilder:validation:MaxLength=63
	OS string `json:"os"`
	// group is label os-group of the nodes, the update channel, such as stable.
	// Absent: the system has none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Group string `json:"group,omitempty"`
	// nodes is how many nodes run the system.
	// +required
	Nodes int32 `json:"nodes"`
	// newest is the newest version that one of these nodes runs, such as 4593.1.0.
	// Versions that consist of numbers between dots are compared number by number; others are listed only.
	// Absent: no version consists of numbers.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Newest string `json:"newest,omitempty"`
	// onNewest is how many nodes run it.
	// +required
	OnNewest int32 `json:"onNewest"`
	// others are the other versions, the newest first and those that do not compare last, at most 5.
	// Of more, those with withoutNeed are listed, the oldest first.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=5
	Others []VersionNodes `json:"others,omitempty"`
}

// VersionNodes counts the nodes that run one version.
type VersionNodes struct {
	// version is label os-version of the nodes.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`
	// nodes is how many nodes run it.
	// +required
	Nodes int32 `json:"nodes"`
	// withoutNeed is how many of them have not reported that they need a reboot: no update waits there for one.
	// +required
	WithoutNeed int32 `json:"withoutNeed"`
}

// WindowStatus is the state of the windows.
type WindowStatus struct {
	// state is one of:
	// - Always: there are no windows, so reboots may begin at any hour.
	// - Open: a window is open.
	// - Closed: no window is open, or a blackout is in force.
	// - Paused: the policy is paused, regardless of the windows.
	// - Urgent: reboots may begin by spec.urgent.all.
	// - Halted: the policy halted after failures, regardless of the windows.
	// +required
	// +kubebuilder:validation:MaxLength=16
	State WindowState `json:"state"`
	// open is whether windows and blackouts allow a reboot to start now.
	// +required
	Open bool `json:"open"`
	// name of the open window, or of the blackout in force.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// closesAt is when the open window closes.
	// Absent: not within 400 days, or closed.
	// +optional
	ClosesAt *metav1.Time `json:"closesAt,omitempty"`
	// opensAt is the next opening.
	// Absent: open, or none within 400 days.
	// +optional
	OpensAt *metav1.Time `json:"opensAt,omitempty"`
}

// WindowState is the state of the windows.
type WindowState string

const (
	// WindowAlways means there are no windows: always open.
	WindowAlways WindowState = "Always"
	// WindowOpen means a window is open.
	WindowOpen WindowState = "Open"
	// WindowClosed means no window is open, or a blackout is in force.
	WindowClosed WindowState = "Closed"
	// WindowPaused means the policy is paused, regardless of the windows.
	WindowPaused WindowState = "Paused"
	// WindowUrgent means reboots may start under spec.urgent.all.
	WindowUrgent WindowState = "Urgent"
	// WindowHalted means the policy halted after failures, regardless of the windows.
	WindowHalted WindowState = "Halted"
)

// GateStatus is what one gate of gates.prometheus or gates.objects reported last.
type GateStatus struct {
	// name of the gate; of gates.objects the kind and the object, such as CephCluster/rook-ceph.
	// +required
	// +kubebuilder:validation:MaxLength=330
	Name string `json:"name"`
	// state is one of:
	// - Clear: the query has no result, or the expression is true of every object.
	// - Firing: the query has a result.
	// - NotReady: the expression is false of an object.
	// - Unreachable: it is not known, and permits nothing.
	// +required
	State GateState `json:"state"`
	// message names a series that blocks, with its value at that time, or an object of which the expression is false.
	// Otherwise it states why the gate could not be asked.
	// Absent: it is clear.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// at is since when the gate has reported it.
	// +required
	At metav1.Time `json:"at"`
}

// GateState is what a gate reported last.
// +kubebuilder:validation:Enum=Clear;Firing;NotReady;Unreachable
type GateState string

const (
	// GateClear means that the query has no result, or that the expression is true of every object.
	GateClear GateState = "Clear"
	// GateFiring means that the query has a result.
	GateFiring GateState = "Firing"
	// GateNotReady means that the expression is false of an object.
	GateNotReady GateState = "NotReady"
	// GateUnreachable means that it is not known.
	GateUnreachable GateState = "Unreachable"
)
