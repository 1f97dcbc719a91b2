package process

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes gives the process its own process group, so that only the starter gets Ctrl-C, and
// makes the kernel send SIGKILL when the thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// endGroup waits for the end of a process and kills the rest of its process group, as the end of a
// container does. The process has not been reaped yet, so its number cannot be reused.
func endGroup(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	// The only possible error is that nothing is left.
	_ = unix.Kill(-pid, unix.SIGKILL)
}
