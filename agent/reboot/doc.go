// Package reboot is the agent's core: it reports on the Node whether the host needs a reboot, and acts on the manager's
// grant. One reconcile observes, decides and applies:
//
//	Node, host, logind, engines, drain ──► Observation ──► Next (pure) ──► Step ──► one write, one call or nothing
//	                                            └────────► NodeStatusOf (pure) ► one patch of nodes/status, or none
//
// An attempt is the progress annotation, and nothing else: a process that was killed anywhere goes on from there.
//
//	               grant Active, unseen, for this boot
//	(none, Aborted, Rebooting of an earlier boot) ────────► Draining ────────► Rebooting ──► logind, the host goes down
//	                      ▲                                    │      drained, grant still Active
//	                      └──────────────── Aborted ◄──────────┘
//	                               cancelled, timed out, undrainable, uncordoned, inhibited
//
// Every write of the progress carries the Node's resourceVersion, so none is made on an old view of the grant. logind is
// called in phase Rebooting only, and only while the host still runs the boot in which the attempt began: that a process
// has started proves nothing, a new boot ID proves a reboot.
package reboot
