// Package plan decides which nodes may be rebooted now, and why each other node may not.
//
// It is pure: a Snapshot goes in, a Plan comes out, and the same snapshot always gives the same plan. It has no client,
// no context, no clock and no logger; a linter proves it. Conditions, status, events and metrics are views of a Plan.
//
// A plan names three kinds of writes, and the order in which they may happen is what keeps the limit:
//
//	finish, cancel, publish  on Nodes: only for entries that are in the ledger already
//	release, adopt, grant    in the ledger (policy status), in one compare-and-swap
//	conditions               on waiting Nodes: reports, which permit nothing
//
// The caller applies the first kind, plans again, applies the second, plans again, until a plan has nothing left to do.
// The life of one grant:
//
//	grant ──► publish ──► (agent: Draining) ──► (agent: Rebooting) ──► new boot ID, settled ──► finish ──► release
//	            │                │
//	            └──── cancel ────┴──► (agent: Aborted, or cannot start any more) ─────────────────────────► release
package plan
