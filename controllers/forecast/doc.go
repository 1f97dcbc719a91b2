// Package forecast states when each node will be rebooted, and when all are done. It runs the planner of controllers/plan
// forward: what a plan grants is imagined to take as long as reboots of the policy have taken so far, and the planner is asked
// again at the next instant at which anything changes.
//
// It is an expectation, not a promise: it cannot know what will need a reboot tomorrow, which drain will hang, or when a person
// ends a pause. What waits for a person or for another system stays where it is in the forecast, and is listed apart.
//
// The planner sees the smallest fleet that gives the same answer: no nodes that are done, and of each queue only the first. So a
// fleet of thousands costs about as many short plans as there are reboots one after the other. Where even that is more than the
// caller has left, the rest of the queues is extrapolated.
package forecast
