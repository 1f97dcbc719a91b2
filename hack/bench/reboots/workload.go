package reboots

import "fmt"

// workload is so many pods for each node, in four Deployments, spread evenly. Nothing limits their disruption.
func workload() []byte {
	const deployments = 4
	var manifest []byte
	for i := range deployments {
		manifest = fmt.Appendf(manifest, `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: load-%[1]d, namespace: default}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: load-%[1]d}}
  template:
    metadata: {labels: {app: load-%[1]d, part: load}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {part: load}}}
      containers: [{name: load, image: example.com/load}]
`, i+1, nodes*pods/deployments)
	}
	return manifest
}
