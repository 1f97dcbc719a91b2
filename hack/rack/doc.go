// Package rack is a rack of real machines in this one: Debian in systemd-nspawn, each with a systemd, a logind, a system bus
// with update_engine on it, containerd and a kubelet of its own. They reboot as machines do, by their logind, and come up
// with another boot ID. It needs root and what hack/e2e/prepare.sh brings.
//
// Nothing is shared with this machine's network, and nothing survives: mounts and network namespaces end with the
// processes that hold them, and a machine is halted when whoever runs the rack dies.
package rack
