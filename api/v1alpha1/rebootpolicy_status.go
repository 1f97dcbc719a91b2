package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FirstYear and LastYear bound the times in records: a clock that shows an earlier year was never set,
// and JSON cannot write a later one.
const FirstYear, LastYear = 2000, 9999

// RebootPolicyStatus holds what the manager observed, decided and granted.
// Only the manager writes it, always with the resourceVersion that it read.
// The ledger in it (limit, seq, grants) keeps two leaders from exceeding the limit.
type RebootPolicyStatus struct {
	// conditions are Halted, Accepted, AgentsReady, DeadlineNear, Progressing and WindowOpen.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec from which this status was computed.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// mode is the mode that applies:
	// - Enforce: grants reboots.
	// - DryRun: decides and reports everything, and grants nothing.
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// nodes counts the nodes of this policy.
	// +optional
	Nodes NodeCounts `json:"nodes,omitempty,omitzero"`

	// blocked says why nodes wait, by reason: reasons that need an action first, then the most frequent.
	// +optional
	// +listType=map
	// +listMapKey=reason
	// +kubebuilder:validation:MaxItems=32
	Blocked []BlockedNodes `json:"blocked,omitempty"`

	// versions counts the versions of operating systems that the nodes run, as their agents label them.
	// At most 8 systems are listed, those with the most nodes first.
	// It is absent if no node has labels os-id and os-version.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Versions []SystemVersions `json:"versions,omitempty"`

	// limit is maxUnavailable as a number of nodes.
	// With concurrency.shared it is the smaller one of the limits of both policies.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Limit int32 `json:"limit"`

	// seq is the highest sequence number of all grants so far.
	// It never decreases.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Seq int64 `json:"seq,omitempty"`

	// grants is the ledger: one entry for each reboot that was granted and is not finished.
	// Grants of a policy with concurrency.shared are in the ledger of the policy that it names.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=1000
	Grants []LedgerEntry `json:"grants,omitempty"`

	// run is the run in progress.
	// A run lasts from the first grant until no node holds a grant and none may be granted.
	// With hooks.runBefore or hooks.runAfter it also lasts while these run, and through soaks, spacing and gates.
	// It is absent if no run is in progress.
	// +optional
	Run *RunStatus `json:"run,omitempty"`

	// window is the state of the windows.
	// +optional
	Window *WindowStatus `json:"window,omitempty"`

	// gates holds the last results of gates.prometheus and gates.objects.
	// It is absent while no node waits for them, because they are not queried then.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=40
	Gates []GateStatus `json:"gates,omitempty"`

	// lastRebootAt is the time when the last reboot was confirmed.
	// It is absent before the first one.
	// +optional
	LastRebootAt *metav1.Time `json:"lastRebootAt,omitempty"`

	// history lists how the last reboots of this policy ended, the newest last: at most 10, and fewer if they are long.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []PastReboot `json:"history,omitempty"`

	// estimatedCompletionAt is the time when the last pending node is expected back, from windows, the limit and how long reboots took so far.
	// It leaves out nodes that wait for a person or another system, and is as old as the last write of this status.
	// It is absent if nothing is pending, or if it is unknown.
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
	// granted nodes have an entry in the ledger: a grant, or hooks that run before it.
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
	// failed nodes have failed an attempt and still need the reboot, or are overdue in a granted one.
	// A failed try of a closed budget does not count.
	// +required
	Failed int32 `json:"failed"`
	// overdue nodes have needed a reboot for longer than spec.deadline.
	// It is absent if no node is overdue.
	// +optional
	Overdue int32 `json:"overdue,omitempty"`
	// agents counts the nodes whose agent works.
	// It is absent until they are known.
	// +optional
	Agents *AgentsStatus `json:"agents,omitempty"`
}

// AgentsStatus counts the agents that work: those that have reported whether their node needs a reboot, and whose pod is Ready.
type AgentsStatus struct {
	// summary is ready and the number of selected nodes as one text, such as 38/40, for the column of kubectl get.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Summary string `json:"summary"`
	// ready is the number of selected nodes that have an agent that works.
	// +required
	Ready int32 `json:"ready"`
	// missing is the number of nodes in service without an agent that works.
	// Nodes that are being rebooted are not in service.
	// +required
	Missing int32 `json:"missing"`
	// nodes names at most five of the nodes without an agent that works.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Nodes []string `json:"nodes,omitempty"`
}

// BlockedNodes counts the nodes that wait for one reason.
type BlockedNodes struct {
	// reason is the reason of condition RebootPermitted of the nodes.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason Reason `json:"reason"`
	// count is the number of nodes that wait for this reason.
	// +required
	Count int32 `json:"count"`
	// nodes names at most five of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Nodes []string `json:"nodes,omitempty"`
}

// SystemVersions counts the versions of one operating system that the nodes of a policy run.
// Each update channel of the system is counted separately.
type SystemVersions struct {
	// os is label os-id of the nodes, such as flatcar.
	// +required
	// +kubebuilder:validation:MaxLength=63
	OS string `json:"os"`
	// group is label os-group of the nodes, the update channel, such as stable.
	// It is absent if the system has no channels.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Group string `json:"group,omitempty"`
	// nodes is the number of nodes that run the system.
	// +required
	Nodes int32 `json:"nodes"`
	// newest is the newest version that one of these nodes runs, such as 4593.1.0.
	// Only versions that consist of numbers and dots are compared, number by number.
	// It is absent if no node runs such a version.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Newest string `json:"newest,omitempty"`
	// onNewest is the number of nodes that run the newest version.
	// +required
	OnNewest int32 `json:"onNewest"`
	// others lists the other versions, the newest first and those that are not compared last.
	// If there are more than five, it lists those with withoutNeed, the oldest first.
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
	// nodes is the number of nodes that run the version.
	// +required
	Nodes int32 `json:"nodes"`
	// withoutNeed is the number of these nodes that do not report a need, so no update on them waits for a reboot.
	// +required
	WithoutNeed int32 `json:"withoutNeed"`
}

// WindowStatus is the state of the windows.
type WindowStatus struct {
	// state is one of:
	// - Always: the policy has no windows, so reboots may start at any hour.
	// - Open: a window is open.
	// - Closed: no window is open, or a blackout is in force.
	// - Paused: the policy is paused, regardless of the windows.
	// - Urgent: reboots may start because of spec.urgent.all.
	// - Halted: the policy halted after failures, regardless of the windows.
	// - Invalid: the spec cannot be used, so nothing is granted. Condition Accepted says why.
	// +required
	// +kubebuilder:validation:MaxLength=16
	State WindowState `json:"state"`
	// open reports whether windows and blackouts allow a reboot to start now, also while state is Paused, Halted or Invalid.
	// +required
	Open bool `json:"open"`
	// name is the name of the open window, or of the blackout in force.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// closesAt is the time when the open window closes.
	// It is absent if no window is open, or none closes within 400 days.
	// +optional
	ClosesAt *metav1.Time `json:"closesAt,omitempty"`
	// opensAt is the time when the next window opens.
	// It is absent if a window is open, or none opens within 400 days.
	// +optional
	OpensAt *metav1.Time `json:"opensAt,omitempty"`
}

// WindowState is the state of the windows.
type WindowState string

const (
	// WindowAlways means the policy has no windows, so reboots may start at any hour.
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
	// WindowInvalid means the spec cannot be used, so nothing is granted.
	WindowInvalid WindowState = "Invalid"
)

// GateStatus is the last result of one gate of gates.prometheus or gates.objects.
type GateStatus struct {
	// name is the name of the gate, or for gates.objects the kind and the object, such as CephCluster/rook-ceph.
	// +required
	// +kubebuilder:validation:MaxLength=330
	Name string `json:"name"`
	// state is one of:
	// - Clear: the query has no result, or the expression is true of every object.
	// - Firing: the query has a result.
	// - NotReady: the expression is false of an object.
	// - Unreachable: the result is unknown, and permits nothing.
	// +required
	State GateState `json:"state"`
	// message names a series that blocks, with its value at that time, or an object for which the expression is false.
	// For Unreachable it says why. It is absent for Clear.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// at is the time when the gate first had this result.
	// +required
	At metav1.Time `json:"at"`
}

// GateState is the last result of a gate.
// +kubebuilder:validation:Enum=Clear;Firing;NotReady;Unreachable
type GateState string

const (
	// GateClear means that the query has no result, or that the expression is true of every object.
	GateClear GateState = "Clear"
	// GateFiring means that the query has a result.
	GateFiring GateState = "Firing"
	// GateNotReady means that the expression is false of an object.
	GateNotReady GateState = "NotReady"
	// GateUnreachable means that the result is unknown.
	GateUnreachable GateState = "Unreachable"
)
