package reboots

import "fmt"

// workload is so many pods for each node, in four Deployments, spread evenly. Nothing limits their disruption.
func workload() []byte {
	const deployments = 4
	var manifest []byte
	left := nodes * pods
	for i := range deployments {
		replicas := left / (deployments - i)
		left -= replicas
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
`, i+1, replicas)
	}
	return manifest
}
