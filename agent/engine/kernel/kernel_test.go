package kernel

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/enginetest"
)

// harness is an Engine that runs on real folders, with a clock that only the test moves.
type harness struct {
	*enginetest.Run

	t      *testing.T
	root   string
	engine *Engine
}

// newHarness returns a host that runs a kernel but has no kernel installed.
func newHarness(t *testing.T, running string) *harness {
	t.Helper()
	h := &harness{Run: enginetest.New(t), t: t, root: t.TempDir()}
	h.engine = &Engine{Options: h.Options(), HostRoot: h.root, ReleaseFile: filepath.Join(t.TempDir(), "osrelease")}
	h.Must(os.WriteFile(h.engine.ReleaseFile, []byte(running+"\n"), 0o600))
	return h
}

func (h *harness) run() {
	h.t.Helper()
	h.Start(h.engine, nil)
}

func (h *harness) path(name string) string { return filepath.Join(h.root, name) }

// write creates a file and its folders.
func (h *harness) write(name string) {
	h.Must(os.MkdirAll(filepath.Dir(h.path(name)), 0o750))
	h.Must(os.WriteFile(h.path(name), nil, 0o600))
}

func (h *harness) remove(name string) { h.Must(os.RemoveAll(h.path(name))) }

// install does what a package does: it adds the modules, then the image, and finally depmod's list.
func (h *harness) install(releases ...string) {
	for _, r := range releases {
		h.write("usr/lib/modules/" + r + "/kernel/fs/ext4.ko")
		h.write("boot/vmlinuz-" + r)
		h.write("usr/lib/modules/" + r + "/modules.dep")
	}
}

func TestEngine_DetectsAKernelThatIsInstalledAndRemoved(t *testing.T) {
	h := newHarness(t, "6.1.0-9-amd64")
	h.install("6.1.0-9-amd64")
	h.run()
	h.Expect(upToDate("6.1.0-9-amd64"))
	h.install("6.1.0-10-amd64")
	h.Expect(needs("6.1.0-10-amd64", "6.1.0-9-amd64"))
	h.install("6.1.0-8-amd64", "6.1.0-11-cloud-amd64")
	h.remove("boot/vmlinuz-6.1.0-10-amd64")
	h.Expect(upToDate("6.1.0-9-amd64"))
}

func TestEngine_WaitsForDepmod(t *testing.T) {
	h := newHarness(t, "6.1.0-9-amd64")
	h.install("6.1.0-9-amd64")
	h.write("usr/lib/modules/6.1.0-10-amd64/kernel/fs/ext4.ko")
	h.write("boot/vmlinuz-6.1.0-10-amd64")
	h.run()
	h.Expect(upToDate("6.1.0-9-amd64"))
	h.write("usr/lib/modules/6.1.0-10-amd64/modules.dep")
	h.Expect(needs("6.1.0-10-amd64", "6.1.0-9-amd64"))
}

func TestEngine_ComparesEveryTenMinutes(t *testing.T) {
	h := newHarness(t, "6.1.0-9-amd64")
	h.run()
	h.Expect(noKernel)
	// inotify had no folder to watch.
	h.install("6.1.0-9-amd64", "6.1.0-10-amd64")
	h.Until("the next look to be due", h.Clock.HasWaiters, 0)
	h.Clock.Step(10*time.Minute - time.Second)
	h.ExpectNoReport()
	h.Clock.Step(time.Second)
	h.Expect(needs("6.1.0-10-amd64", "6.1.0-9-amd64"))
}

func TestEngine_AHostWithoutKernelsIsUnknown_Behaviour7(t *testing.T) {
	h := newHarness(t, "6.1.0-9-amd64")
	h.install("6.1.0-9-amd64")
	h.run()
	h.Expect(upToDate("6.1.0-9-amd64"))
	h.remove("boot")
	h.remove("usr")
	h.ExpectAfter(period, noKernel)
	h.install("6.1.0-9-amd64")
	h.ExpectAfter(period, upToDate("6.1.0-9-amd64"))
	if got := []bool{<-h.Reachable, <-h.Reachable, <-h.Reachable}; !slices.Equal(got, []bool{true, false, true}) {
		t.Errorf("reachable %v, want true, false and true", got)
	}
}

func TestEngine_AHostThatIsNotThereIsUnknown(t *testing.T) {
	h := newHarness(t, "6.1.0-9-amd64")
	h.engine.HostRoot = h.path("missing")
	h.run()
	h.Expect(engine.Unreachable(Name, "The host's kernels cannot be read: its file system: no such file or directory."))
}

func TestEngine_AReleaseThatCannotBeReadIsUnknown(t *testing.T) {
	cases := map[string]string{"empty": "", "no version": "Linux", "without end": strings.Repeat("6.1.0", 1<<16), "several": "6.1.0\n6.1.1"}
	for name, content := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, content)
			h.install("6.1.0-9-amd64")
			h.run()
			h.Expect(noRelease)
		})
	}
}

// Without the images, the remains of a removed kernel would look like an installed one.
func TestEngine_AFolderThatCannotBeReadIsUnknown(t *testing.T) {
	for folder, want := range map[string]string{"boot": "/boot", "usr": "/usr/lib/modules"} {
		h := newHarness(t, "6.1.0-9-amd64")
		h.install("6.1.0-9-amd64", "6.1.0-10-amd64")
		h.remove(folder)
		h.Must(os.Symlink(folder, h.path(folder)))
		h.run()
		h.Expect(engine.Unreachable(Name, "The host's kernels cannot be read: "+want+": too many levels of symbolic links."))
	}
}

func TestEngine_RunsOnThisMachine(t *testing.T) {
	e := Engine{HostRoot: "/", ReleaseFile: "/proc/sys/kernel/osrelease"}
	found, err := e.look()
	if err != nil || found.running.text == "" {
		t.Errorf("saw %+v, %v", found, err)
	}
}

func TestInstalled(t *testing.T) {
	const one, two = "6.1.0-9-amd64", "6.1.0-10-amd64"
	cases := map[string]struct {
		files []string
		want  []string
	}{
		"modules and images": {
			[]string{"usr/lib/modules/" + one + "/modules.dep", "boot/vmlinuz-" + one, "usr/lib/modules/" + two + "/modules.dep", "boot/vmlinuz-" + two},
			[]string{two, one},
		},
		"images among the modules": {
			[]string{"usr/lib/modules/" + one + "/modules.dep", "usr/lib/modules/" + one + "/vmlinuz"}, []string{one},
		},
		"modules of a host whose images cannot be read": {
			[]string{"usr/lib/modules/" + one + "/modules.dep", "usr/lib/modules/" + two + "/modules.dep"}, []string{two, one},
		},
		"leftovers of a removed kernel": {
			[]string{"usr/lib/modules/" + one + "/modules.dep", "boot/vmlinuz-" + one, "usr/lib/modules/" + two + "/modules.dep"},
			[]string{one},
		},
		"leftovers of a removed kernel, images among the modules": {
			[]string{
				"usr/lib/modules/" + one + "/modules.dep", "usr/lib/modules/" + one + "/vmlinuz", "usr/lib/modules/" + two + "/modules.dep",
			},
			[]string{one},
		},
		"a kernel that is being installed": {
			[]string{"usr/lib/modules/" + one + "/modules.dep", "boot/vmlinuz-" + one, "usr/lib/modules/" + two + "/vmlinuz"},
			[]string{one},
		},
		"folders that are not kernels": {
			[]string{"usr/lib/modules/" + one + "/modules.dep", "usr/lib/modules/updates/modules.dep", "usr/lib/modules/README"},
			[]string{one},
		},
		"a host without merged /usr":  {[]string{"lib/modules/" + one + "/modules.dep"}, []string{one}},
		"an empty folder in addition": {[]string{"usr/lib/modules/README", "lib/modules/" + one + "/modules.dep"}, []string{one}},
		"images alone":                {[]string{"boot/vmlinuz-" + one, "boot/vmlinuz-" + two, "boot/initrd.img-6.1.0-11-amd64"}, []string{two, one}},
		"a file that is not an image": {
			[]string{"boot/vmlinuz-" + one, "boot/vmlinuz-0-rescue-3f2a", "boot/vmlinuz", "boot/vmlinuz-6.1.0-11-amd64/x"}, []string{one},
		},
		"nothing": {nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, one)
			for _, file := range tc.files {
				h.write(file)
			}
			found, err := h.engine.look()
			h.Must(err)
			var got []string
			for _, r := range found.installed {
				got = append(got, r.text)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("installed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInstalled_IgnoresFoldersOutsideTheHost(t *testing.T) {
	h := newHarness(t, "6.1.0-9-amd64")
	other := newHarness(t, "6.1.0-9-amd64")
	other.install("6.1.0-10-amd64")
	h.Must(os.Symlink(other.path("usr"), h.path("usr")))
	h.Must(os.Symlink(other.path("boot"), h.path("boot")))
	if found, err := h.engine.look(); err == nil || len(found.installed) > 0 {
		t.Errorf("found %v outside the host, %v", found.installed, err)
	}
}

// needs returns the report of a host that runs one kernel and has a newer one.
func needs(installed, running string) engine.Report {
	return engine.Report{
		Engine: "kernel", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: installed,
		Running: running, Message: "Kernel " + installed + " is installed, and " + running + " is running.",
	}
}

// upToDate returns the report of a host that runs its newest kernel.
func upToDate(running string) engine.Report {
	return engine.Report{
		Engine: "kernel", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate,
		Message: "Kernel " + running + " is running, and no newer one of its kind is installed.",
	}
}

var (
	noKernel  = engine.Unreachable(Name, "No kernel is found in the host's /usr/lib/modules, /lib/modules or /boot.")
	noRelease = engine.Unreachable(Name, "The host's kernels cannot be read: the running one's release: it is not a version.")
)

func TestReport(t *testing.T) {
	cases := map[string]struct {
		running   string
		installed []string
		want      engine.Report
	}{
		"the newest kernel runs":                          {"6.1.0-10-amd64", []string{"6.1.0-9-amd64", "6.1.0-10-amd64"}, upToDate("6.1.0-10-amd64")},
		"a newer kernel is installed":                     {"6.1.0-9-amd64", []string{"6.1.0-10-amd64", "6.1.0-9-amd64"}, needs("6.1.0-10-amd64", "6.1.0-9-amd64")},
		"the newest of several newer kernels is reported": {"6.1.0-8-amd64", []string{"6.1.0-9-amd64", "6.1.0-11-amd64", "6.1.0-10-amd64"}, needs("6.1.0-11-amd64", "6.1.0-8-amd64")},
		"the running kernel was removed":                  {"6.1.0-9-amd64", []string{"6.1.0-10-amd64"}, needs("6.1.0-10-amd64", "6.1.0-9-amd64")},
		"another flavour is not a successor":              {"6.1.0-9-amd64", []string{"6.1.0-9-amd64", "6.1.0-10-cloud-amd64"}, upToDate("6.1.0-9-amd64")},
		"a newer kernel of the same flavour": {
			"6.1.0-9-cloud-amd64",
			[]string{"6.1.0-9-cloud-amd64", "6.1.0-10-cloud-amd64", "6.1.0-11-amd64"},
			needs("6.1.0-10-cloud-amd64", "6.1.0-9-cloud-amd64"),
		},
		"the kernel of a distribution's next release is a successor": {
			"6.13.9-200.fc41.x86_64",
			[]string{"6.13.9-200.fc41.x86_64", "6.14.0-63.fc42.x86_64"},
			needs("6.14.0-63.fc42.x86_64", "6.13.9-200.fc41.x86_64"),
		},
		"a release after its release candidate":   {"6.7.0-rc8", []string{"6.7.0-rc8", "6.7.0"}, needs("6.7.0", "6.7.0-rc8")},
		"a release candidate of the next version": {"6.7.0", []string{"6.7.0", "6.8.0-rc1"}, needs("6.8.0-rc1", "6.7.0")},
		"only older kernels":                      {"6.1.0-10-amd64", []string{"6.1.0-9-amd64"}, upToDate("6.1.0-10-amd64")},
		"the same kernel under another name":      {"6.7-1", []string{"6.7.0-1"}, upToDate("6.7-1")},
		"no kernel is installed":                  {"6.1.0-10-amd64", nil, noKernel},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := observation{running: parse(t, tc.running)}
			for _, text := range tc.installed {
				o.installed = append(o.installed, parse(t, text))
			}
			if diff := cmp.Diff(tc.want, report(o, nil)); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}
