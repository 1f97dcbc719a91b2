// Package timeline derives the story of a rollout from nothing but the revisions of the Nodes, as anybody could watch them:
// what each node is doing and why, when each phase of its reboot began, and how many nodes were unavailable at once. It
// believes neither the manager nor the agents, and it is pure: time is a value.
package timeline
