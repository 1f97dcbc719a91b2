//go:build !linux

package process

import "syscall"

// attributes: its own process group, so that Ctrl-C in a terminal is the starter's to act on. Only Linux can also tie
// the program's life to the starter's.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// endGroup does nothing: only Linux can wait for a process and leave it to be waited for.
func endGroup(int) {}
