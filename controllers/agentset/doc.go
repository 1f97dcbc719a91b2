// Package agentset decides how the agents' DaemonSet should be, for a manager that brings its own agents.
//
// It is pure: policies, nodes and the DaemonSet as it is go in, a Step comes out. A linter proves it.
//
// Agents run on the nodes that any policy selects, whichever policy governs them and in any mode: a node reports before it is
// rebooted. An agent is not removed during an attempt. A policy that is being deleted counts until its finalizer
// has gone, which waits for its grants; a node that no policy selects any more keeps its agent until its attempt has
// ended, by name; because of a selector that cannot be read, no node loses its agent.
//
// A new image or a new selector changes the template, so the DaemonSet controller replaces the agents, a few at a time.
// That needs no care here: where an agent is replaced during a drain, the next one goes on with the drain. The
// DaemonSet is never deleted to be made again.
package agentset
