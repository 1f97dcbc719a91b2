// Package forecast states when each node will be rebooted, and when all are done. It runs the planner of controllers/plan
// forward: what a plan grants is imagined to take as long as reboots of the policy have taken so far, and the planner is asked
// again at the next instant at which anything changes. Nothing is stepped through by the clock.
//
// It is an expectation, and no promise: nobody knows what will need a reboot tomorrow, which drain will hang, or when a person
// takes a pause away. What waits for a person or for another system stays where it is in the forecast, and is listed apart.
//
// The planner looks at a fleet that is as small as can be without another answer: at nodes that are done it needs not look
// again, and of those that wait in a queue only at the first. A fleet of thousands so costs about as many short plans as there are
// reboots one after the other. Where even that is more than the caller has left, the rest of the queues is extrapolated.
package forecast
