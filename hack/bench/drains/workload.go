package drains

import (
	"fmt"
	"strings"
)

const (
	// namespace has the pods that are drained.
	namespace = "drains"
	// replicas is how many pods of one workload there are on a node, so how often a budget of one has to come free.
	replicas = 10
	// starting is how long after it was bound to a node a pod is Ready.
	starting = "1s"
	// longest is the longest time in seconds that a pod takes to end: workloads take 1, 2, 3, 1, 2, 3 and so on.
	longest = 3
)

// workload is so many pods in Deployments of 10, which run on one of two nodes and nowhere else.
func workload(pods int, nodes ...string) []byte {
	manifest := fmt.Appendf(nil, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespace)
	for i := 0; i*replicas < pods; i++ {
		manifest = fmt.Appendf(manifest, `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: load-%02[1]d, namespace: %[2]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: load-%02[1]d}}
  template:
    metadata:
      labels: {app: load-%02[1]d}
      annotations: {embedded.reboot-operator.io/start: %[4]s, embedded.reboot-operator.io/stop: %[5]ds}
    spec:
      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%[6]s]}]}]}}}
      containers: [{name: load, image: example.com/load}]
`, i, namespace, min(replicas, pods-i*replicas), starting, 1+i%longest, strings.Join(nodes, ", "))
	}
	return manifest
}

// budgets let one pod of each Deployment be away.
func budgets(pods int) []byte {
	var manifest []byte
	for i := 0; i*replicas < pods; i++ {
		manifest = fmt.Appendf(manifest, `---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: load-%02[1]d, namespace: %[2]s}
spec:
  maxUnavailable: 1
  selector: {matchLabels: {app: load-%02[1]d}}
`, i, namespace)
	}
	return manifest
}
