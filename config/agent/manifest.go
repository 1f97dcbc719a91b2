// Package agent contains the manifest of the agents' DaemonSet. With --manage-agents, the manager
// applies the same file as `kubectl apply`, so that the two cannot differ.
package agent

import _ "embed"

//go:embed daemonset.yaml
var manifest string

// Manifest returns daemonset.yaml.
func Manifest() string { return manifest }
