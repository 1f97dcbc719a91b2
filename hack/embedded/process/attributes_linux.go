package process

import "syscall"

// attributes: its own process group, so that Ctrl-C in a terminal is the starter's to act on; and SIGKILL from the
// kernel when the thread that started it ends, however that happens.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
