package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RebootPolicy selects nodes and controls their reboots after an operating-system update.
// It sets how many nodes reboot at a time, when they reboot, and how they are drained first.
// Its status is the ledger of the granted reboots that are not finished.
//
// With the rules on the root the API server refuses what a paused or stale manager might still write:
// a grant over the limit, a sequence number that decreases, or a limit above the one in the spec.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=rebootpolicies,singular=rebootpolicy,shortName=rbp,categories=reboot-operator
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.status.mode`,description="Enforce, or DryRun, which decides and reports but grants nothing"
// +kubebuilder:printcolumn:name="Window",type=string,JSONPath=`.status.window.state`,description="Always, Open, Closed, Paused, Urgent, Halted or Invalid"
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes.selected`,description="Nodes that this policy governs"
// +kubebuilder:printcolumn:name="Agents",type=string,JSONPath=`.status.nodes.agents.summary`,description="Nodes whose agent works, and all nodes"
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.nodes.rebootRequired`,description="Nodes that need a reboot"
// +kubebuilder:printcolumn:name="Granted",type=integer,JSONPath=`.status.nodes.granted`,description="Nodes in the ledger: they wait for hooks, are drained or are rebooted"
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.nodes.failed`,description="Nodes whose hooks, drain or reboot failed"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Rebooting",type=integer,priority=1,JSONPath=`.status.nodes.rebooting`,description="Granted nodes whose host was sent to reboot"
// +kubebuilder:printcolumn:name="Max",type=integer,priority=1,JSONPath=`.status.limit`,description="maxUnavailable in nodes"
// +kubebuilder:printcolumn:name="Next-Open",type=string,priority=1,JSONPath=`.status.window.opensAt`,description="Next opening while the window is closed"
// +kubebuilder:printcolumn:name="Closes",type=string,priority=1,JSONPath=`.status.window.closesAt`,description="When the open window closes"
// +kubebuilder:printcolumn:name="Blocked-By",type=string,priority=1,JSONPath=`.status.blocked[*].reason`,description="Reasons why nodes wait, those that need an action first"
// +kubebuilder:printcolumn:name="ETA",type=string,priority=1,JSONPath=`.status.estimatedCompletionAt`,description="When the last pending node is expected back"
// +kubebuilder:validation:XValidation:rule="!has(self.status) || !has(self.status.grants) || self.status.grants.all(g, g.seq <= self.status.?seq.orValue(0))",message="status.seq must be at least the seq of every grant: read the status again before you write it"
// +kubebuilder:validation:XValidation:rule="self.?status.?seq.orValue(0) >= oldSelf.?status.?seq.orValue(0)",message="status.seq must not decrease: read the status again before you write it"
// +kubebuilder:validation:XValidation:rule="!has(self.status) || !has(self.status.grants) || self.status.grants.size() <= self.status.?limit.orValue(0) || self.status.grants.all(g, g.seq <= oldSelf.?status.?seq.orValue(0))",message="status.grants has as many entries as status.limit allows: wait until a reboot ends before you add one"
// +kubebuilder:validation:XValidation:rule="self.?status.?limit.orValue(0) == oldSelf.?status.?limit.orValue(0) || (type(self.?spec.?concurrency.?maxUnavailable.orValue(1)) == int ? self.?status.?limit.orValue(0) <= self.?spec.?concurrency.?maxUnavailable.orValue(1) : true) || (self.?spec.?concurrency.?shared.hasValue() && !self.?spec.?concurrency.?maxUnavailable.hasValue())",message="status.limit must not be more than spec.concurrency.maxUnavailable: raise maxUnavailable first"
// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.concurrency) || !has(self.spec.concurrency.shared) || self.spec.concurrency.shared != self.metadata.name",message="spec.concurrency.shared must name another RebootPolicy: a policy cannot share its own limit"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name of a RebootPolicy may have at most 63 characters: choose a shorter one"
type RebootPolicy struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired behavior. A first policy needs no more than these fields, read in this order:
	// - nodeSelector: which nodes.
	// - mode: DryRun to see what would happen, or Enforce.
	// - concurrency: how many nodes at a time.
	// - windows: the hours in which reboots may start.
	// - blackouts: the dates on which no reboot starts.
	// - pause: stops new reboots until you remove it.
	// - drain: how pods leave a node.
	// +optional
	Spec RebootPolicySpec `json:"spec,omitempty"`

	// status holds what the manager observed, decided and granted.
	// +optional
	Status RebootPolicyStatus `json:"status,omitempty"`
}

// RebootPolicyList is a list of RebootPolicies.
//
// +kubebuilder:object:root=true
type RebootPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the policies.
	Items []RebootPolicy `json:"items"`
}

// Mode says whether a policy grants reboots.
// +kubebuilder:validation:Enum=Enforce;DryRun
type Mode string

const (
	// ModeEnforce grants reboots.
	ModeEnforce Mode = "Enforce"
	// ModeDryRun decides and reports everything and grants nothing.
	ModeDryRun Mode = "DryRun"
)

// RebootPolicySpec is the desired behavior of a RebootPolicy.
// Every field is optional.
// The empty spec reboots every node that needs a reboot, one at a time, at any hour, after draining it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.urgent) || !has(self.urgent.overdue) || has(self.deadline)",message="urgent.overdue needs deadline: without one no node is overdue"
type RebootPolicySpec struct {
	// nodeSelector selects the nodes that this policy governs, such as {matchLabels: {pool: blue}}.
	// If it is absent or empty, the policy governs every Node.
	// Windows nodes are never selected, because agents cannot run on them.
	// +optional
	NodeSelector *LabelSelector `json:"nodeSelector,omitempty"`

	// mode is one of:
	// - Enforce: grants reboots.
	// - DryRun: decides and reports everything, and grants nothing.
	// Defaults to Enforce.
	// Example: DryRun.
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// concurrency limits how many nodes may be down at once, such as {maxUnavailable: 10%}.
	// If it is absent, its fields have their defaults.
	// +optional
	Concurrency *Concurrency `json:"concurrency,omitempty"`

	// windows are the hours in which reboots may start: those of any window in the list.
	// A reboot that is in progress when a window closes is finished.
	// If the list is absent or empty, reboots may start at any time.
	// Example: [{name: nights, days: [Mon, Tue], start: "22:00", duration: 6h}].
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	Windows []Window `json:"windows,omitempty"`

	// blackouts are dates on which no reboot starts, even if a window is open.
	// Dates without a year, such as "12-19", repeat every year.
	// Defaults to none.
	// Example: [{name: year-end, from: "2026-12-19", to: "2027-01-04"}].
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Blackouts []Blackout `json:"blackouts,omitempty"`

	// pause stops new grants until the time in it, or until you remove it.
	// Grants that no agent has begun to use are cancelled, and reboots in progress finish.
	// If it is absent, the policy is not paused.
	// Example: {reason: Black Friday, until: "2026-12-01T00:00:00Z"}.
	// +optional
	Pause *Pause `json:"pause,omitempty"`

	// drain configures how pods leave the node.
	// If it is absent, its fields have their defaults.
	// +optional
	Drain *Drain `json:"drain,omitempty"`

	// reboot configures how the node is rebooted.
	// If it is absent, its fields have their defaults.
	// +optional
	Reboot *Reboot `json:"reboot,omitempty"`

	// maxFailures is the number of failed nodes since the last success at which the policy halts, such as 1.
	// A halted policy grants nothing until you run `kubectl annotate rebootpolicy NAME reboot-operator.io/resume="why"`.
	// Defaults to 2.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxFailures *int32 `json:"maxFailures,omitempty"`

	// priority decides which policy governs a node that several policies select: the one with the highest priority.
	// If several have that priority, the node is not rebooted, and condition Accepted of these policies reports the conflict.
	// Defaults to 0.
	// Example: 10.
	// +optional
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority int32 `json:"priority,omitempty"`

	// rings are groups of nodes that reboot one after the other.
	// A node is in the first ring that selects it, and nodes that no ring selects come last.
	// If the list is absent or empty, all nodes are equal.
	// Example: [{name: canary, nodeSelector: {matchLabels: {stage: canary}}, soak: 1d}].
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.name == self[size(self) - 1].name || has(r.nodeSelector.matchLabels) && size(r.nodeSelector.matchLabels) > 0 || has(r.nodeSelector.matchExpressions) && size(r.nodeSelector.matchExpressions) > 0)",message="only the last ring may have an empty nodeSelector, because it takes all remaining nodes: move it to the end, or give it labels"
	Rings []Ring `json:"rings,omitempty"`

	// gates are conditions that are checked before each grant.
	// Defaults to none.
	// +optional
	Gates *Gates `json:"gates,omitempty"`

	// hooks are your own checks, before the drain and after the boot of each node, or before and after each run.
	// A run lasts from the first grant until no node holds a grant and none may be granted.
	// Defaults to none.
	// +optional
	Hooks *Hooks `json:"hooks,omitempty"`

	// deadline is the time within which a node should be rebooted once it needs a reboot, such as 14d.
	// Nodes past their deadline go before the others in their ring, and condition DeadlineNear reports them after three quarters of that time.
	// If it is absent, nodes have no deadline.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$') && [timestamp(self.contains('d') ? 86400 * int(self.substring(0, self.indexOf('d'))) : 0) - timestamp(0) + duration('0s' + self.substring(self.indexOf('d') + 1))].all(d, d >= duration('1h') && d <= duration('8760h'))",message="deadline must be a duration of at least 1h and at most 365d, such as 14d"
	Deadline *Duration `json:"deadline,omitempty"`

	// maxUptime is the longest that a node may be up before it needs a reboot, such as 30d.
	// Each node becomes due in the last tenth of that time, depending on its name, so that not all become due at once.
	// If it is absent, no node needs a reboot because of its uptime.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,4}d)?([0-9]{1,5}h)?([0-9]{1,7}m)?([0-9]{1,9}s)?([0-9]{1,12}ms)?$') && [timestamp(self.contains('d') ? 86400 * int(self.substring(0, self.indexOf('d'))) : 0) - timestamp(0) + duration('0s' + self.substring(self.indexOf('d') + 1))].all(d, d >= duration('24h') && d <= duration('87600h'))",message="maxUptime must be a duration of at least 24h and at most 3650d, such as 30d"
	MaxUptime *Duration `json:"maxUptime,omitempty"`

	// nodeConditions lists conditions that other programs write on Nodes, such as node-problem-detector.
	// A node needs a reboot once one of them has lasted, and at most one for each time that it changes.
	// If the list is absent or empty, no node needs a reboot because of a condition.
	// Example: [{type: KernelDeadlock, for: 10m}].
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=10
	NodeConditions []NodeConditionNeed `json:"nodeConditions,omitempty"`

	// urgent lists the reboots that may start although windows, blackouts or a pause forbid it.
	// Limits, the guard of control-plane nodes, PodDisruptionBudgets, gates and hooks always count.
	// If it is absent, no reboot is urgent.
	// +optional
	Urgent *Urgent `json:"urgent,omitempty"`

	// autoscaler configures what keeps cluster-autoscaler and Karpenter from removing a node, such as {grace: 30m}.
	// If it is absent, its fields have their defaults.
	// +optional
	Autoscaler *Autoscaler `json:"autoscaler,omitempty"`

	// notify lists services that receive notifications of runs, failures and halts.
	// Defaults to none.
	// Example: [{secretRef: {name: chat}, events: [Failed, Halted]}].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Notify []Notification `json:"notify,omitempty"`
}
