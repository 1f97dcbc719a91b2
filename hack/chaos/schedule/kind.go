// Package schedule draws schedules of faults: each is a function of its seed. It is pure.
package schedule

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	ManagerKilled      Kind = "manager killed"                   // SIGKILL; another process replaces it
	ManagerStopped     Kind = "manager stopped beyond its lease" // SIGSTOP for longer than its Lease, then SIGCONT
	ManagerCutOff      Kind = "manager cut off"                  // each of its requests is dropped
	AgentKilled        Kind = "agent killed"                     // in the middle of whatever it does; another replaces it
	AgentStopped       Kind = "agent stopped"                    // held at its next request, answer or call of its host
	ServerRestarted    Kind = "API server restarted"             // killed and started again
	EtcdStopped        Kind = "etcd stopped"                     // SIGSTOP, then SIGCONT
	EtcdRestarted      Kind = "etcd restarted"                   // killed and started again
	WatchesDropped     Kind = "watches dropped"                  // those of managers and agents, in the middle
	Conflict           Kind = "409"                              // to writes, which are not carried out
	TooMany            Kind = "429"                              // with Retry-After
	ServerError        Kind = "500"
	AnswerLost         Kind = "time-out after success"     // a write is carried out, and the answer lost
	ClockJumped        Kind = "clock jumped an hour"       // that of a manager or an agent, on or back
	ClocksChanged      Kind = "summer time began or ended" // all clocks pass the change, in the window's zone
	NodeDeleted        Kind = "node deleted"               // and its machine is gone for good
	NodeRegisteredAnew Kind = "node registered anew"       // deleted, and its kubelet registers it again
	NodeRenamed        Kind = "node renamed away"          // deleted, and its machine comes back under another name
	PolicyEdited       Kind = "policy edited"              // another limit
	PolicyPaused       Kind = "policy paused"              // and the end of the pause
	PolicyRecreated    Kind = "policy re-created"          // deleted, finalizer and ledger with it, and created again
	StatusWiped        Kind = "status wiped"               // all of it that the API server lets go
	AdminCordons       Kind = "node cordoned by an administrator"
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
