package sentinel

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/enginetest"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// harness is an Engine that runs on a real folder, with a clock that only the test moves.
type harness struct {
	*enginetest.Run

	t    *testing.T
	root string
	// optional, before and files are the Engine's.
	optional bool
	before   engine.Report
	files    []string
}

// newHarness makes a host with an empty /run.
func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{Run: enginetest.New(t), t: t, root: t.TempDir()}
	h.mkdir("run")
	return h
}

func (h *harness) run() {
	h.t.Helper()
	options := h.Options()
	options.Optional, options.Before = h.optional, h.before
	h.Start(&Engine{Options: options, HostRoot: h.root, Files: h.files}, nil)
}

func (h *harness) path(name string) string { return filepath.Join(h.root, name) }

func (h *harness) mkdir(name string) { h.Must(os.MkdirAll(h.path(name), 0o750)) }

func (h *harness) write(name, content string) {
	h.Must(os.WriteFile(h.path(name), []byte(content), 0o600))
}

func (h *harness) move(from, to string) { h.Must(os.Rename(h.path(from), h.path(to))) }

func (h *harness) remove(name string) { h.Must(os.RemoveAll(h.path(name))) }

// because waits for a need with these packages.
func (h *harness) because(packages ...string) {
	h.t.Helper()
	h.Expect(observation{present: Defaults[:1], packages: packages}.report())
}

// looksLike looks without an Engine.
func (h *harness) looksLike(want engine.Report) {
	h.t.Helper()
	if diff := cmp.Diff(want, look(h.root, Defaults).report()); diff != "" {
		h.t.Errorf("report (-want +got):\n%s", diff)
	}
}

// next waits for a report.
func (h *harness) next() engine.Report {
	h.t.Helper()
	h.Until("a report", func() bool { return len(h.Reports) > 0 }, 0)
	return <-h.Reports
}

func TestEngine_TheFileIsANeedUntilItIsRemoved_Behaviour12(t *testing.T) {
	h := newHarness(t)
	h.run()
	h.Expect(noFile)
	for range 3 {
		h.write("run/reboot-required", "*** System restart required ***\n")
		h.Expect(present)
		h.remove("run/reboot-required")
		h.Expect(noFile)
	}
}

func TestEngine_ReportsThePackagesAsTheyAreAdded(t *testing.T) {
	h := newHarness(t)
	h.write("run/reboot-required", "")
	h.run()
	h.Expect(present)
	h.write("run/next", "libc6\n")
	h.move("run/next", "run/reboot-required.pkgs")
	h.because("libc6")
	h.write("run/next", "libc6\ndbus\n")
	h.move("run/next", "run/reboot-required.pkgs")
	h.because("libc6", "dbus")
}

func TestEngine_TheFileOfSUSEIsANeed_Behaviour12(t *testing.T) {
	h := newHarness(t)
	h.run()
	h.Expect(noFile)
	h.write("run/reboot-needed", "reboot")
	h.Expect(needed("/run/reboot-needed exists on the host."))
	h.write("run/reboot-required", "")
	h.Expect(needed("/run/reboot-required and /run/reboot-needed exist on the host."))
	h.remove("run/reboot-needed")
	h.Expect(present)
}

func TestEngine_FilesThatAreNamedReplaceTheDefaults(t *testing.T) {
	h := newHarness(t)
	h.files = []string{"/var/lib/patches/reboot", "/run/please"}
	h.write("run/reboot-required", "")
	h.mkdir("var/lib/patches")
	h.run()
	h.Expect(engine.Report{
		Engine: "sentinel", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate,
		Message: "Neither /var/lib/patches/reboot nor /run/please exists on the host.",
	})
	h.write("var/lib/patches/reboot.pkgs", "kernel\n")
	h.write("var/lib/patches/reboot", "")
	h.Expect(needed("/var/lib/patches/reboot exists on the host, because of kernel."))
	h.write("run/please", "")
	h.write("run/please.pkgs", "kernel\nglibc\n")
	h.Until("both", func() bool {
		return len(h.Reports) > 0 && (<-h.Reports).Message == "/var/lib/patches/reboot and /run/please exist on the host, because of kernel, glibc."
	}, time.Minute)
	h.remove("var/lib/patches")
	const gone = "The host's /var/lib/patches cannot be read: no such file or directory."
	h.Until("the folder's end", func() bool {
		return len(h.Reports) > 0 && <-h.Reports == needed("/run/please exists on the host, because of kernel, glibc. "+gone)
	}, time.Minute)
	h.remove("run/please")
	h.remove("run/please.pkgs")
	// Nothing is known to ask for a reboot, and what the folder would have is unknown.
	h.Until("the need's end", func() bool {
		return len(h.Reports) > 0 && <-h.Reports == engine.Unreachable("sentinel", gone)
	}, time.Minute)
}

func TestLook_WhatPassesForTheFile(t *testing.T) {
	h := newHarness(t)
	h.write("run/reboot-required.pkgs", "libc6\n")
	h.looksLike(noFile)
	h.remove("run/reboot-required.pkgs")
	h.mkdir("run/reboot-required") // What a container leaves that mounts the file.
	h.looksLike(noFile)
	h.remove("run/reboot-required")
	h.Must(os.Symlink("/nowhere", h.path("run/reboot-required")))
	h.looksLike(present)
}

func TestLook_AFileInTheRootOfTheHost(t *testing.T) {
	h := newHarness(t)
	h.write("reboot", "")
	if diff := cmp.Diff(needed("/reboot exists on the host."), look(h.root, []string{"/reboot"}).report()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestLook_WhatIsNoFolder(t *testing.T) {
	h := newHarness(t)
	h.remove("run")
	h.write("run", "")
	notAFolder := noRun
	notAFolder.Message = "The host's /run cannot be read: not a directory."
	h.looksLike(notAFolder)
	h.root = h.path("missing")
	h.looksLike(noRun)
}

func TestLook_ListsThatCannotBeRead(t *testing.T) {
	h := newHarness(t)
	h.write("run/reboot-required", "")
	h.Must(syscall.Mkfifo(h.path("run/reboot-required.pkgs"), 0o600))
	h.looksLike(present)
	h.remove("run/reboot-required.pkgs")
	h.mkdir("run/reboot-required.pkgs")
	h.looksLike(present)
	h.remove("run/reboot-required.pkgs")
	h.Must(os.Symlink("/etc/passwd", h.path("run/reboot-required.pkgs")))
	h.looksLike(present)
}

func TestLook_ReadsTheBeginningOfALongList(t *testing.T) {
	h := newHarness(t)
	h.write("run/reboot-required", "")
	h.write("run/reboot-required.pkgs", "libc6\n"+strings.Repeat("\n", 8<<10-9)+"dbus\n")
	// The last line is cut in two, and half a name is not one.
	h.looksLike(observation{present: Defaults[:1], packages: []string{"libc6"}}.report())
}
