// Package agent holds the manifest of the agents' DaemonSet for the manager that brings its own agents: with
// --manage-agents it applies the very file that `kubectl apply` applies otherwise, so the two cannot drift apart.
package agent

import _ "embed"

//go:embed daemonset.yaml
var manifest string

// Manifest is daemonset.yaml.
func Manifest() string { return manifest }
