//go:build !linux

package process

import "syscall"

// attributes: its own process group, so that Ctrl-C in a terminal is the starter's to act on. Only Linux can also tie
// the program's life to the starter's.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
