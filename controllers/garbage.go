package controllers

import "runtime/debug"

// garbagePercent is GOGC where nobody says otherwise. Nearly all that the manager holds is its cache of Nodes, and it makes
// little garbage: to collect it more often costs nothing that could be measured, and saves a quarter of its memory.
const garbagePercent = 50

// LimitGarbage keeps the manager's garbage to half of what it holds. Gogc is the environment's GOGC, which has the last word;
// empty: there is none.
func LimitGarbage(gogc string) {
	if gogc == "" {
		debug.SetGCPercent(garbagePercent)
	}
}
