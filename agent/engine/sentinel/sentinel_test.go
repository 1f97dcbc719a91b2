package sentinel

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/enginetest"
)

// harness is an Engine that runs on a real folder, with a clock that only the test moves.
type harness struct {
	*enginetest.Run

	t    *testing.T
	root string
	// optional, before and files are options of the Engine.
	optional bool
	before   engine.Report
	files    []string
}

// newHarness returns a host with an empty /run.
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

// looksLike checks the result of a look without an Engine.
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
	// No file requires a reboot any more, and the content of the folder is unknown.
	h.Until("the need's end", func() bool {
		return len(h.Reports) > 0 && <-h.Reports == engine.Unreachable("sentinel", gone)
	}, time.Minute)
}

func TestLook_AFolderDoesNotCountButADeadLinkDoes(t *testing.T) {
	h := newHarness(t)
	h.write("run/reboot-required.pkgs", "libc6\n")
	h.looksLike(noFile)
	h.remove("run/reboot-required.pkgs")
	h.mkdir("run/reboot-required") // as left behind by a container that mounts the file
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

func TestLook_FileInsteadOfAFolder(t *testing.T) {
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
	// The last line is cut in two, and half a name must not count.
	h.looksLike(observation{present: Defaults[:1], packages: []string{"libc6"}}.report())
}

func TestEngine_AHostWithoutRunIsUnknown_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.remove("run")
	h.run()
	h.Expect(noRun)
	h.mkdir("run")
	h.ExpectAfter(time.Minute, noFile)
	h.write("run/reboot-required", "")
	h.Expect(present)
	h.remove("run")
	// The file disappears first, then its folder.
	h.Until("the end of /run to be noticed", func() bool { return len(h.Reports) > 0 && <-h.Reports == noRun }, time.Minute)
	if got := []bool{<-h.Reachable, <-h.Reachable, <-h.Reachable}; got[0] || !got[1] || got[2] {
		t.Errorf("reachable %v, want false, true and false", got)
	}
}

func TestEngine_WithoutAFlagIsAbsentUntilRunIsMountedAndUnknownOnceItIsGone_Behaviour7(t *testing.T) {
	for name, spoil := range map[string]func(*harness){
		"nothing":     func(h *harness) { h.remove("run") },
		"a file":      func(h *harness) { h.remove("run"); h.write("run", "") },
		"no host":     func(h *harness) { h.root = h.path("missing") },
		"a dead link": func(h *harness) { h.remove("run"); h.Must(os.Symlink("missing", h.path("run"))) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.optional = true
			spoil(h)
			h.run()
			if r := h.next(); r.State != engine.Absent {
				t.Errorf("reported %+v, want it absent", r)
			}
			h.remove("")
			h.mkdir("run")
			// A look in between may not even find the folder.
			h.Until("/run to be found", func() bool { return len(h.Reports) > 0 && <-h.Reports == noFile }, time.Minute)
			h.remove("run")
			h.ExpectAfter(time.Minute, noRun)
			if got := []bool{<-h.Reachable, <-h.Reachable}; !got[0] || got[1] {
				t.Errorf("reachable %v, want true and then false", got)
			}
		})
	}
}

// The mounts of a pod change only with a new process of the agent.
func TestEngine_ThatWasThereInThisBootIsNotAbsentForTheNextProcess_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.optional, h.before = true, present
	h.remove("run")
	h.run()
	h.Expect(noRun)
}

// Expected reports.
var (
	noFile = engine.Report{
		Engine: "sentinel", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate,
		Message: "Neither /run/reboot-required nor /run/reboot-needed exists on the host.",
	}
	noRun = engine.Report{
		Engine: "sentinel", State: engine.Unknown, Reason: v1alpha1.ReasonEngineUnreachable,
		Message: "The host's /run cannot be read: no such file or directory.",
	}
	present = needed("/run/reboot-required exists on the host.")
)

func needed(message string) engine.Report {
	return engine.Report{
		Engine: "sentinel", State: engine.Needed, Reason: v1alpha1.ReasonSentinelPresent, Message: message,
	}
}

func TestReport(t *testing.T) {
	cases := map[string]struct {
		seen observation
		want engine.Report
	}{
		"no file, no need":                {observation{files: Defaults}, noFile},
		"a file is a need (behaviour 12)": {observation{present: Defaults[:1]}, present},
		"an unreadable file is unknown":   {observation{unreadable: "no such file or directory", folder: "/run"}, noRun},
		"a file is a need even if another folder cannot be read": {
			observation{unreadable: "no such file or directory", folder: "/run", present: Defaults[:1]}, needed(present.Message + " " + noRun.Message),
		},
		"the message names the packages":        {observation{present: Defaults[:1], packages: []string{"libc6", "dbus"}}, needed("/run/reboot-required exists on the host, because of libc6, dbus.")},
		"packages without the file are ignored": {observation{files: Defaults, packages: []string{"libc6"}}, noFile},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.seen.report()); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessage_NamesAsManyPackagesAsThereIsRoomFor(t *testing.T) {
	names := func(n, size int) []string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("p%0*d", size-1, i))
		}
		return names
	}
	cases := map[string]struct {
		packages []string
		end      string
	}{
		"one":       {names(1, 3), "because of p00."},
		"sixteen":   {names(16, 3), "p14, p15."},
		"seventeen": {names(17, 3), "p14, p15 and 1 more."},
		"too long":  {names(40, 40), " and 36 more."},
		"very long": {names(3, 64), "p000000000000000000000000000000000000000000000000000000000000002."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := needMessage(Defaults[:1], tc.packages)
			if !strings.HasSuffix(got, tc.end) || len(got) > engine.MaxMessageBytes {
				t.Errorf("%d bytes: %q, want an end of %q", len(got), got, tc.end)
			}
		})
	}
}

func TestAppendPackages(t *testing.T) {
	cases := map[string]struct {
		content string
		want    []string
	}{
		"empty":                             {"", nil},
		"one package, without a line break": {"dbus", []string{"dbus"}},
		"Ubuntu's": {
			"linux-image-6.8.0-45-generic\nlinux-base\nlibc6\nlibc6\n", []string{"linux-image-6.8.0-45-generic", "linux-base", "libc6"},
		},
		"Debian's":                           {"linux-image-6.12.43+deb13-cloud-amd64\n", []string{"linux-image-6.12.43+deb13-cloud-amd64"}},
		"with an architecture or a version":  {"libc6:amd64\nopenssl=3.0.17-1~deb12u3\n", []string{"libc6:amd64", "openssl=3.0.17-1~deb12u3"}},
		"white space around it":              {" dbus \r\n\n\t\nlibc6", []string{"dbus", "libc6"}},
		"sentences are not packages":         {"*** System restart required ***\nRebooted.  All is well\ndbus", []string{"dbus"}},
		"binary data is not a package":       {"\xff\x00\n\u202edbus\nd\x00bus\n", nil},
		"options and paths are not packages": {"-rf\n/etc/passwd\n..\n", nil},
		"endless text is not a package":      {strings.Repeat("x", 65) + "\n", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, appendPackages(nil, tc.content)); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzAppendPackages(f *testing.F) {
	f.Add("linux-image-6.8.0-45-generic\nlinux-base\nlibc6\nlibc6\n")
	f.Add("*** System restart required ***\n")
	f.Add("\xff\n-\n" + strings.Repeat("x", 65))
	f.Fuzz(func(t *testing.T, content string) {
		packages := appendPackages(nil, content)
		got := observation{present: Defaults[:1], packages: packages}.report()
		if len(got.Message) > engine.MaxMessageBytes || !utf8.ValidString(got.Message) || strings.ContainsAny(got.Message, "\n\x00") {
			t.Errorf("message of %d bytes: %q", len(got.Message), got.Message)
		}
		again := appendPackages(nil, strings.Join(packages, "\n"))
		if diff := cmp.Diff(packages, again); diff != "" {
			t.Errorf("packages do not read as themselves (-want +got):\n%s", diff)
		}
	})
}

// FuzzLook shows that the file counts whatever its content is, and that the message fits into the
// Node.
func FuzzLook(f *testing.F) {
	f.Add("*** System restart required ***\n", "linux-image-6.1.0-37-amd64\nlibc6\n", uint16(1))
	f.Add("", "libc6\n", uint16(3000))
	f.Add("", "a-name-without-an-end", uint16(1000))
	f.Add("\x00", "\xff\n\n", uint16(2))
	f.Fuzz(func(t *testing.T, text, packages string, times uint16) {
		root := t.TempDir()
		all := strings.Repeat(packages, min(int(times), 64<<10/max(1, len(packages))))
		for name, content := range map[string]string{"run/reboot-required": text, "run/reboot-required.pkgs": all} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		found := look(root, Defaults)
		for _, name := range found.packages {
			if !slices.ContainsFunc(strings.Split(all, "\n"), func(line string) bool { return strings.TrimSpace(line) == name }) {
				t.Errorf("%q was made up, or cut", name)
			}
		}
		r := found.report()
		if r.State != engine.Needed || len(r.Message) > engine.MaxMessageBytes || !utf8.ValidString(r.Message) {
			t.Errorf("report %+v", r)
		}
	})
}
