package hosttest

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// starterEnv makes this very test the starter that is going to be killed: it is the folder for its bus.
const starterEnv = "HOSTTEST_STARTER"

func TestBus_AKilledStarterTakesTheDaemonAlong(t *testing.T) {
	if dir := os.Getenv(starterEnv); dir != "" {
		bus, err := Start(dir)
		must(t, err)
		println(bus.daemon.Process.Pid)
		select {}
	}
	starter := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	starter.Env = append(os.Environ(), starterEnv+"="+t.TempDir())
	stderr, err := starter.StderrPipe()
	must(t, err)
	must(t, starter.Start())
	line, err := bufio.NewReader(stderr).ReadString('\n')
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	must(t, err)
	if !runs(pid) {
		t.Fatalf("no daemon runs as %d", pid)
	}
	must(t, starter.Process.Kill())
	_ = starter.Wait() // Its error is the kill.
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return !runs(pid), nil
	})
	if err != nil {
		t.Errorf("the daemon %d runs on: %v", pid, err)
	}
}

// A terminal sends its interrupt to a whole process group.
func TestBus_KeepsTheTerminalsInterruptFromItsDaemon(t *testing.T) {
	bus := StartFor(t)
	pid := bus.daemon.Process.Pid
	if id, err := syscall.Getpgid(pid); err != nil || id != pid {
		t.Errorf("process group %d (%v), want its own, %d", id, err, pid)
	}
}

// runs is false of a zombie too: nobody may wait for an orphan here.
func runs(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(text), ") Z ")
}
