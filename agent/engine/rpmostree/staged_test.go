package rpmostree

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

// bootc and ostree stage deployments without the daemon, which has exited because it was idle. So
// no signal reports it.
func TestEngine_DetectsADeploymentStagedWithoutTheDaemonAtOnce_Behaviour11(t *testing.T) {
	h := newHarness(t)
	h.engine.HostRoot = t.TempDir()
	run := filepath.Join(h.engine.HostRoot, "run")
	h.Must(os.Mkdir(run, 0o700))
	ostree := h.install(running)
	h.start()
	h.Expect(upToDate)
	h.exit(ostree)
	starts := ostree.Starts()

	staged := hosttest.Deployment{Version: "40.2", Staged: true, Locked: true}
	h.Must(ostree.SetDeploymentsQuietly(staged, running))
	h.Must(os.Mkdir(filepath.Join(run, "ostree"), 0o700))
	locked := filepath.Join(run, "ostree", "staged-deployment-locked")
	h.Must(os.WriteFile(locked, nil, 0o600))
	h.Expect(locked402)

	h.exit(ostree)
	staged.Locked = false
	h.Must(ostree.SetDeploymentsQuietly(staged, running))
	h.Must(os.Remove(locked))
	h.Expect(staged402)

	h.exit(ostree)
	h.Must(ostree.SetDeploymentsQuietly(running))
	// A rename is one change, but a write would be two.
	written := filepath.Join(h.engine.HostRoot, "written")
	h.Must(os.WriteFile(written, []byte("x"), 0o600))
	h.Must(os.Rename(written, filepath.Join(run, "ostree", "staged-deployment")))
	h.Expect(upToDate)
	if n := ostree.Starts(); n != starts+3 {
		t.Errorf("the daemon was started %d times for it, want 3", n-starts)
	}

	// Other changes in /run do not trigger a read.
	h.exit(ostree)
	reads := ostree.Reads()
	h.Must(os.WriteFile(filepath.Join(run, "x"), nil, 0o600))
	h.Must(os.WriteFile(filepath.Join(run, "ostree", "x"), nil, 0o600))
	h.Must(os.Remove(filepath.Join(run, "ostree", "staged-deployment")))
	h.Until("the read for the last of it", func() bool { return ostree.Reads() > reads }, 0)
	if n := ostree.Reads(); n != reads+1 {
		t.Errorf("%d reads, want 1", n-reads)
	}
	h.ExpectNoReport()
}

// bootc upgrade --download-only marks the staged deployment in its file so that a reboot ignores
// it. The daemon does not report that.
func TestEngine_DetectsThatBootcLockedTheStagedDeployment_Behaviour11(t *testing.T) {
	h := newHarness(t)
	h.engine.HostRoot = t.TempDir()
	stage := stageByBootc(t, h.engine.HostRoot)
	stage("staged-deployment-locked")
	ostree := h.install(hosttest.Deployment{Version: "40.2", Staged: true}, running)
	h.start()
	h.Expect(locked402)
	h.exit(ostree)
	stage("staged-deployment") // bootc upgrade
	h.Expect(staged402)
}

func TestDriver_LeavesADeploymentToBootcThatHasLockedIt(t *testing.T) {
	d := newDrive(t, hosttest.Deployment{Version: "40.2", Staged: true}, running)
	d.driver.HostRoot = t.TempDir()
	stageByBootc(t, d.driver.HostRoot)("staged-deployment-locked")
	d.start()
	d.next(Round{Outcome: OutcomeLocked}, "")
	d.calls()
}

// stageByBootc returns a function that replaces the file of the staged deployment by one of engine
// bootc's.
func stageByBootc(t *testing.T, hostRoot string) func(name string) {
	t.Helper()
	folder := filepath.Join(hostRoot, "run", "ostree")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return func(name string) {
		t.Helper()
		content, err := os.ReadFile(filepath.Join("..", "bootc", "testdata", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(hostRoot, name), content, 0o600)
		}
		if err == nil {
			err = os.Rename(filepath.Join(hostRoot, name), filepath.Join(folder, "staged-deployment"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
