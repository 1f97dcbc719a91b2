package bootc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/enginetest"
)

// GLib itself wrote the files staged-deployment… and c2.commit in testdata, with the keys of ostree
// 2026.

var (
	c1, c2, c3, boot = strings.Repeat("c1", 32), strings.Repeat("c2", 32), strings.Repeat("c3", 32), strings.Repeat("b0", 32)
	e1, e2           = strings.Repeat("e1", 64), strings.Repeat("e2", 64)
)

const bootLink = "sysroot/ostree/boot.1/default/"

var (
	upToDate = engine.Report{Engine: "bootc", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: "bootc has staged no deployment."}
	absent   = engine.Report{Engine: "bootc", State: engine.Absent, Reason: v1alpha1.ReasonEngineUnreachable, Message: "The host does not run a bootc image."}
)

func staged(version, running string) engine.Report {
	return engine.Report{
		Engine: "bootc", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: version, Running: running,
		Message: "bootc has staged " + version + "; it runs after a reboot.",
	}
}

func unreadable(description string) engine.Report {
	return engine.Report{
		Engine: "bootc", State: engine.Unknown, Reason: v1alpha1.ReasonEngineUnreachable, Message: "bootc's deployments cannot be read: " + description + ".",
	}
}

// harness is an Engine that runs on real folders, with a clock that only the test moves.
type harness struct {
	*enginetest.Run

	t      *testing.T
	engine *Engine
}

// newHarness returns a host that bootc updates, with the command line of its kernel.
func newHarness(t *testing.T, cmdline string) *harness {
	t.Helper()
	h := &harness{Run: enginetest.New(t), t: t}
	h.engine = &Engine{Options: h.Options(), HostRoot: t.TempDir(), Cmdline: filepath.Join(t.TempDir(), "cmdline")}
	h.engine.Optional = true
	h.Must(os.WriteFile(h.engine.Cmdline, []byte("BOOT_IMAGE=/x "+cmdline+" rw quiet\n"), 0o600))
	h.write("usr/bin/bootc", "")
	h.write("run/x", "")
	return h
}

// newOSTree returns a host with bootc's older store that runs commit c1, with or without /sysroot.
func newOSTree(t *testing.T, sysroot bool) *harness {
	t.Helper()
	h := newHarness(t, "ostree=/ostree/boot.1/default/"+boot+"/0")
	h.write("run/ostree-booted", "")
	if sysroot {
		h.write(bootLink+boot+"/x", "")
		h.Must(os.Symlink("../../../deploy/default/deploy/"+c1+".0", h.path(bootLink+boot+"/0")))
		h.write("sysroot/ostree/deploy/default/deploy/"+c1+".0.origin", "[origin]\ncontainer-image-reference=ostree-unverified-registry:quay.io/acme/os:1\n")
		h.write("sysroot/ostree/deploy/default/deploy/"+c2+".0.origin", "[origin]\ncontainer-image-reference=ostree-image-signed:docker://quay.io/acme/os:1\n")
		h.write("sysroot/ostree/repo/objects/c2/"+c2[2:]+".commit", h.testdata("c2.commit"))
	}
	return h
}

// newComposefs returns a host with bootc's newer store that runs image e1.
func newComposefs(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t, "composefs=?"+e1)
	h.write("sysroot/state/deploy/"+e1+"/"+e1+".origin", "[origin]\ncontainer-image-reference=ostree-unverified-image:docker://quay.io/acme/os:2\n"+
		"[image]\nmanifest_digest=sha256:"+c1+"\n")
	h.write("sysroot/state/deploy/"+e2+"/"+e2+".origin", "[origin]\ncontainer-image-reference=ostree-unverified-image:registry:quay.io/acme/os:2\n"+
		"[image]\nmanifest_digest=sha256:"+c2+"\n")
	return h
}

func (h *harness) run() {
	h.t.Helper()
	h.Start(h.engine, nil)
}

func (h *harness) path(name string) string { return filepath.Join(h.engine.HostRoot, name) }

// write replaces a file as bootc and ostree do, and creates its folders.
func (h *harness) write(name, content string) {
	h.t.Helper()
	h.Must(os.MkdirAll(filepath.Dir(h.path(name)), 0o700))
	h.Must(os.WriteFile(h.path(name)+".new", []byte(content), 0o600))
	h.Must(os.Rename(h.path(name)+".new", h.path(name)))
}

func (h *harness) remove(name string) { h.Must(os.RemoveAll(h.path(name))) }

func (h *harness) testdata(name string) string {
	h.t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	h.Must(err)
	return string(content)
}

// looksLike checks the result of a look without running the Engine.
func (h *harness) looksLike(want engine.Report) {
	h.t.Helper()
	got := look(h.engine.HostRoot, h.engine.Cmdline, h.engine.Optional).report()
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestEngine_DetectsADeploymentStagedInOSTree(t *testing.T) {
	h := newOSTree(t, true)
	h.run()
	h.Expect(upToDate)
	h.write(ostreeStaged, h.testdata("staged-deployment"))
	h.Expect(staged("quay.io/acme/os:1@sha256:d2d2d2d2d2d2", "quay.io/acme/os:1@"+c1[:12]))
	h.write(ostreeStaged, h.testdata("staged-deployment-unlocked")) // a deployment of another commit without an origin
	h.Expect(staged(c3[:12], "quay.io/acme/os:1@"+c1[:12]))
	h.remove(ostreeStaged)
	h.Expect(upToDate)
}

func TestEngine_DetectsADeploymentStagedInComposefs(t *testing.T) {
	h := newComposefs(t)
	h.run()
	h.Expect(upToDate)
	h.write(composefsStaged, `{"depl_id":"`+e2+`","finalization_locked":true}`)
	locked := upToDate
	locked.Message = "bootc has staged quay.io/acme/os:2@sha256:c2c2c2c2c2c2, which is locked: a reboot leaves it out until it is unlocked."
	h.Expect(locked)
	h.write(composefsStaged, `{"depl_id":"`+e2+`","finalization_locked":false}`)
	h.Expect(staged("quay.io/acme/os:2@sha256:c2c2c2c2c2c2", "quay.io/acme/os:2@sha256:c1c1c1c1c1c1"))
	h.remove(composefsStaged)
	h.Expect(upToDate)
}

// bootc before 1.17 writes the older parameter. Later releases write the newer one, or both.
func TestLook_KnowsBothParametersOfComposefs(t *testing.T) {
	for _, cmdline := range []string{
		"composefs=" + e1, "composefs=?" + e1, "composefs.digest=v1-sha512-12:" + e1, "composefs.digest=?v1-sha512-12:" + e1,
		"composefs.digest=v1-sha512-12:" + e1 + " composefs=" + e2,
	} {
		h := newComposefs(t)
		h.Must(os.WriteFile(h.engine.Cmdline, []byte("root=UUID=x "+cmdline+" rw\n"), 0o600))
		h.looksLike(upToDate)
		h.write(composefsStaged, `{"depl_id":"`+e2+`","finalization_locked":false}`)
		h.looksLike(staged("quay.io/acme/os:2@sha256:c2c2c2c2c2c2", "quay.io/acme/os:2@sha256:c1c1c1c1c1c1"))
	}
}

// The manifests do not mount /sysroot. The need is then detected from /run alone, and its version
// is the commit.
func TestEngine_WithoutSysrootTheNeedIsDetectedAllTheSame(t *testing.T) {
	h := newOSTree(t, false)
	h.write(ostreeStaged, h.testdata("staged-deployment"))
	h.run()
	h.Expect(staged(c2[:12], ""))
}

func TestLook_LockedDeploymentIsNotANeed(t *testing.T) {
	locked := upToDate
	locked.Message = "bootc has staged " + c2[:12] + ", which is locked: a reboot leaves it out until it is unlocked."
	h := newOSTree(t, false)
	h.write(ostreeStaged, h.testdata("staged-deployment-locked"))
	h.looksLike(locked)
	h.write(ostreeStaged, h.testdata("staged-deployment"))
	h.write(ostreeLocked, "")
	h.looksLike(locked)
	h.remove(ostreeLocked)
	h.looksLike(staged(c2[:12], ""))
}

func TestLook_UnreadableStateIsUnknown_Behaviour7(t *testing.T) {
	whole := newOSTree(t, false).testdata("staged-deployment")
	for name, tc := range map[string]struct{ content, want string }{
		"half a file":      {whole[:len(whole)/2], "it is not a GVariant dictionary"},
		"nothing in it":    {"", "it does not name a deployment"},
		"noise":            {strings.Repeat("\xff", 300), "it is not a GVariant dictionary"},
		"no target":        {newOSTree(t, false).testdata("staged-deployment-no-target"), "it does not name a deployment"},
		"a path as a name": {strings.Replace(whole, c2, "../"+c2[3:], 1), "it does not name a deployment"},
		"no end":           {strings.Repeat("x", maxBytes+1), "it is not a GVariant dictionary"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newOSTree(t, false)
			h.write(ostreeStaged, tc.content)
			h.looksLike(unreadable("/run/ostree/staged-deployment: " + tc.want))
		})
	}
	for content, want := range map[string]string{
		"{": "unexpected end of JSON input", `{"depl_id":"../x"}`: "it does not name a deployment",
		`{"depl_id":1}`: "json: cannot unmarshal number into Go struct field .depl_id of type string",
	} {
		h := newComposefs(t)
		h.write(composefsStaged, content)
		h.looksLike(unreadable("/run/composefs/staged-deployment: " + want))
	}
	h := newComposefs(t)
	h.Must(os.Remove(h.engine.Cmdline))
	h.looksLike(unreadable("the kernel's command line: no such file or directory"))
	for folder, want := range map[string]string{"usr": "/usr/bin/bootc", "run": "/run/ostree-booted"} {
		h := newOSTree(t, false)
		h.remove(folder)
		h.Must(os.Symlink(folder, h.path(folder)))
		h.looksLike(unreadable(want + ": too many levels of symbolic links"))
	}
}

func TestEngine_IsAbsentIfItIsNotNamedAndDoesNotSuitTheHost(t *testing.T) {
	for name, spoil := range map[string]func(*harness){
		"no bootc":                   func(h *harness) { h.remove("usr/bin/bootc") },
		"rpm-ostree serves the host": func(h *harness) { h.write("usr/bin/rpm-ostree", "") },
		"no image was booted":        func(h *harness) { h.remove("run/ostree-booted") },
		"a file instead of a folder": func(h *harness) { h.remove("usr"); h.write("usr", "") },
		"no host":                    func(h *harness) { h.engine.HostRoot = h.path("missing") },
	} {
		t.Run(name, func(t *testing.T) {
			h := newOSTree(t, false)
			spoil(h)
			h.run()
			h.Expect(absent)
		})
	}
	h := newOSTree(t, false)
	h.engine.Optional = false
	h.write("usr/bin/rpm-ostree", "")
	h.looksLike(upToDate)
}

func TestEngine_LooksEveryFiveMinutes(t *testing.T) {
	h := newOSTree(t, false)
	h.remove("run/ostree-booted")
	h.Must(os.Rename(h.path("run"), h.path("elsewhere")))
	h.run()
	h.Expect(absent)
	h.Must(os.Rename(h.path("elsewhere"), h.path("run"))) // inotify had no folder to watch.
	h.write("run/ostree-booted", "")
	h.Until("the next look to be due", h.Clock.HasWaiters, 0)
	h.Clock.Step(5*time.Minute - 1)
	h.ExpectNoReport()
	h.Clock.Step(1)
	h.Expect(upToDate)
}

func TestWithoutTransport(t *testing.T) {
	for reference, want := range map[string]string{
		"ostree-unverified-registry:quay.io/a/b:c": "quay.io/a/b:c", "ostree-unverified-image:docker://quay.io/a/b": "quay.io/a/b",
		"ostree-image-signed:registry:quay.io/a/b": "quay.io/a/b", "ostree-remote-registry:fedora:quay.io/a/b:c": "quay.io/a/b:c", "quay.io/a/b": "quay.io/a/b",
	} {
		if got := withoutTransport(reference); got != want {
			t.Errorf("%s: %s, want %s", reference, got, want)
		}
	}
}

func FuzzDictionary(f *testing.F) {
	for _, name := range []string{"staged-deployment", "staged-deployment-locked", "staged-deployment-no-target", "c2.commit"} {
		content, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, read := range []func([]byte) (map[string]variant, error){dictionary, commitMetadata} {
			values, err := read(content)
			for key, value := range values {
				if err == nil && len(key)+len(value.data) > len(content) {
					t.Errorf("%q has more than all of it", key)
				}
			}
		}
	})
}
