// Package agent holds the manifest of the agents' DaemonSet. With --manage-agents the manager applies the very file that `kubectl
// apply` applies otherwise, so the two cannot drift apart.
package agent

import _ "embed"

//go:embed daemonset.yaml
var manifest string

// Manifest is daemonset.yaml.
func Manifest() string { return manifest }
