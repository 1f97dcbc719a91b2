//go:build !linux

package process

import "syscall"

// attributes gives the process its own process group, so that the starter alone handles Ctrl-C.
// Only Linux can also end the program together with the starter.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// endGroup does nothing: only Linux can wait for a process without reaping it.
func endGroup(int) {}
