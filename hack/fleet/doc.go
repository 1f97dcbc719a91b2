// Package fleet is simulated machines that run the operator for real, on an embedded cluster.
//
// Each machine has a private D-Bus and a root folder, and on these a fake logind and a fake of its update engine. The pods
// of the manifests are run as processes, the way a kubelet runs containers: on the machine they are scheduled to, with a
// token bound to the pod, until the pod goes. When an agent asks logind for a reboot, every process on its machine is
// killed, the node falls silent, and comes back on a new boot ID. Everything else (pods of other workloads) is kwok's, but
// for the namespaces of Options.Run.
package fleet
