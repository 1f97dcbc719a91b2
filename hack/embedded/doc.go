// Package embedded is a whole Kubernetes cluster on one machine, without containers: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and kwok as child processes on 127.0.0.1, with simulated nodes, or real ones
// (package rack). It is up in a few seconds and leaves nothing behind.
//
// It is as strict as a real cluster where that matters here: Node and RBAC authorisation, NodeRestriction, client
// certificates, tokens bound to pods, and an audit log that reports exactly who asked for what.
package embedded
