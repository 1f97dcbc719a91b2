// Package scale measures the manager on thousands of nodes, and what the watches of thousands of agents cost the API server.
// The API server, etcd and the manager are real; the nodes are objects that look like those of real clusters, written by
// this process, which also plays their kubelets and agents. There are no controllers and no pods: what is measured does not
// look at them.
package scale
