// Package process starts programs that never outlive the one that started them: each has its own process group, so that
// an interrupt typed in a terminal reaches only the starter, and is killed by the kernel when the starter dies.
package process
