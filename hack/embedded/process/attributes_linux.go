package process

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes are its own process group, so that only the starter gets Ctrl-C, and SIGKILL from the kernel when the thread that started
// it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// endGroup waits for the end of a process and kills what it leaves in its process group, as the end of a container does. Nobody has
// waited for the process yet, so its number is nobody else's.
func endGroup(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	// The only error is that nothing is left.
	_ = unix.Kill(-pid, unix.SIGKILL)
}
