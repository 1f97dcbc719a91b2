// Package schedule draws schedules of faults: each is a function of its seed. It is pure.
package schedule

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	// ManagerKilled is SIGKILL to a manager; another process replaces it.
	ManagerKilled Kind = "manager killed"
	// ManagerStopped is SIGSTOP to a manager for longer than its Lease, then SIGCONT.
	ManagerStopped Kind = "manager stopped beyond its lease"
	// ManagerCutOff drops every request of a manager.
	ManagerCutOff Kind = "manager cut off"
	// AgentKilled ends an agent in the middle of whatever it does; another replaces it.
	AgentKilled Kind = "agent killed"
	// AgentStopped holds an agent at its next request, answer or call of its host, then lets it go on.
	AgentStopped Kind = "agent stopped"
	// ServerRestarted kills the API server and starts it again.
	ServerRestarted Kind = "API server restarted"
	// EtcdStopped is SIGSTOP to etcd, then SIGCONT.
	EtcdStopped Kind = "etcd stopped"
	// EtcdRestarted kills etcd and starts it again.
	EtcdRestarted Kind = "etcd restarted"
	// WatchesDropped cuts every watch of managers and agents in the middle.
	WatchesDropped Kind = "watches dropped"
	// Conflict answers writes with 409 without carrying them out.
	Conflict Kind = "409"
	// TooMany answers requests with 429 and Retry-After.
	TooMany Kind = "429"
	// ServerError answers requests with 500.
	ServerError Kind = "500"
	// AnswerLost carries a write out and loses the answer.
	AnswerLost Kind = "time-out after success"
	// ClockJumped puts the clock of a manager or an agent on or back by an hour.
	ClockJumped Kind = "clock jumped an hour"
	// ClocksChanged brings all clocks over the instant at which summer time begins or ends, in the window's zone.
	ClocksChanged Kind = "summer time began or ended"
	// NodeDeleted deletes a Node whose machine is gone for good.
	NodeDeleted Kind = "node deleted"
	// NodeRegisteredAnew deletes a Node whose kubelet registers it again.
	NodeRegisteredAnew Kind = "node registered anew"
	// NodeRenamed deletes a Node whose machine comes back under another name.
	NodeRenamed Kind = "node renamed away"
	// PolicyEdited changes the limit of a policy.
	PolicyEdited Kind = "policy edited"
	// PolicyPaused pauses a policy, and ends the pause.
	PolicyPaused Kind = "policy paused"
	// PolicyRecreated deletes a policy, finalizer and ledger with it, and creates it again.
	PolicyRecreated Kind = "policy re-created"
	// StatusWiped removes all of a policy's status that the API server lets go.
	StatusWiped Kind = "status wiped"
	// AdminCordons is an administrator who cordons a node.
	AdminCordons Kind = "node cordoned by an administrator"
)

// Kinds are all kinds of faults, in the order of reports.
func Kinds() []Kind {
	return []Kind{
		ManagerKilled, ManagerStopped, ManagerCutOff, AgentKilled, AgentStopped, ServerRestarted, EtcdStopped, EtcdRestarted,
		WatchesDropped, Conflict, TooMany, ServerError, AnswerLost, ClockJumped, ClocksChanged, NodeDeleted, NodeRegisteredAnew,
		NodeRenamed, PolicyEdited, PolicyPaused, PolicyRecreated, StatusWiped, AdminCordons,
	}
}

// rare are kinds that cost a control plane seconds of a core: a schedule has them only where it is their turn.
var rare = map[Kind]bool{ServerRestarted: true, EtcdRestarted: true, ClocksChanged: true}
