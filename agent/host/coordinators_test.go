package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

var locksmithd = &Coordinator{Name: "locksmithd", Unit: "locksmithd.service"}

// startUnits starts a bus with a systemd, and Coordinators for a host that has no coordinator.conf.
func startUnits(t *testing.T) (*hosttest.Bus, *hosttest.Units, Coordinators) {
	t.Helper()
	bus := hosttest.StartFor(t)
	units, err := hosttest.StartUnits(bus)
	must(t, err)
	return bus, units, Coordinators{Connect: SystemBus(bus.Address()), HostRoot: t.TempDir()}
}

func TestCoordinators_LocksmithdIsActive_Behaviour57(t *testing.T) {
	_, units, coordinators := startUnits(t)
	for state, want := range map[any]*Coordinator{
		"active": locksmithd, "activating": locksmithd, "deactivating": locksmithd, "reloading": locksmithd, "refreshing": locksmithd,
		"a state of a later systemd": locksmithd,
		"inactive":                   nil, "failed": nil, nil: nil,
	} {
		units.Set("locksmithd.service", state)
		got, err := coordinators.Other(t.Context())
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ActiveState %v (-want +got):\n%s", state, diff)
		}
	}
}

func TestCoordinators_IgnoreOtherUnits(t *testing.T) {
	_, units, coordinators := startUnits(t)
	units.Set("update-engine.service", "active")
	if other, err := coordinators.Other(t.Context()); other != nil || err != nil {
		t.Errorf("found %v, %v", other, err)
	}
}

func TestCoordinators_WithoutSystemdNoUnitRuns(t *testing.T) {
	bus, units, coordinators := startUnits(t)
	units.Set("locksmithd.service", "active")
	units.Stop()
	if other, err := coordinators.Other(t.Context()); other != nil || err != nil {
		t.Errorf("found %v, %v", other, err)
	}
	// The package of systemd makes the bus start /bin/false if another init runs.
	must(t, bus.MakeActivatable("org.freedesktop.systemd1"))
	if other, err := coordinators.Other(t.Context()); other != nil || err != nil {
		t.Errorf("found %v, %v", other, err)
	}
}

// systemd leaves the bus while it re-executes itself, for example when it is upgraded. Its units
// keep running.
func TestCoordinators_AreUnknownIfSystemdIsOffTheBus(t *testing.T) {
	_, units, coordinators := startUnits(t)
	must(t, os.MkdirAll(filepath.Join(coordinators.HostRoot, "run", "systemd", "system"), 0o700))
	units.Stop()
	const want = "asking systemd whether locksmithd.service is active: systemd answers org.freedesktop.DBus.Error.NameHasNoOwner"
	if other, err := coordinators.Other(t.Context()); other != nil || err == nil || err.Error() != want {
		t.Errorf("found %v, %v", other, err)
	}
}

// The error for a missing systemd differs between brokers.
func TestCoordinators_AreNoneIfTheHostHasNoSystemd(t *testing.T) {
	_, units, coordinators := startUnits(t)
	for _, name := range []string{
		"org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner", "org.freedesktop.systemd1.NoSuchUnit",
	} {
		units.Fail(name, "")
		if other, err := coordinators.Other(t.Context()); other != nil || err != nil {
			t.Errorf("%s: found %v, %v", name, other, err)
		}
	}
}

func TestCoordinators_UnknownIsNotANo_Behaviour57(t *testing.T) {
	for name, tc := range map[string]struct {
		breaks func(*hosttest.Bus, *hosttest.Units)
		want   string
	}{
		"systemd refuses": {
			func(_ *hosttest.Bus, u *hosttest.Units) {
				u.Fail("org.freedesktop.DBus.Error.AccessDenied", `Rejected send message; sender=":1.7" (uid=0 pid=12)`)
			},
			"asking systemd whether locksmithd.service is active: systemd answers org.freedesktop.DBus.Error.AccessDenied",
		},
		"the state is a number": {
			func(_ *hosttest.Bus, u *hosttest.Units) { u.Set("locksmithd.service", uint32(1)) },
			"asking systemd whether locksmithd.service is active: reading ActiveState of locksmithd.service: u instead of a string",
		},
		"no bus": {func(b *hosttest.Bus, _ *hosttest.Units) { _ = b.Stop() }, "connecting to the bus"},
	} {
		t.Run(name, func(t *testing.T) {
			bus, units, coordinators := startUnits(t)
			tc.breaks(bus, units)
			other, err := coordinators.Other(t.Context())
			if other != nil || err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("found %v, %v", other, err)
			}
			if err != nil && strings.Contains(err.Error(), "sender") {
				t.Errorf("%q is another text with each look", err)
			}
		})
	}
}

// docs/hosts.md lists the programs in the order of the table, with their units and what their
// commands set.
func TestRebooters_AreThoseOfTheDocs(t *testing.T) {
	rows, err := document.Table(filepath.Join("..", "..", "docs", "hosts.md"), "Who else reboots a host")
	must(t, err)
	type program struct {
		name  string
		units []string
	}
	var want, got []program
	for _, r := range rebooters {
		want = append(want, program{r.name, r.units})
	}
	for i, row := range rows {
		name, _, _ := strings.Cut(row[0], " (")
		got = append(got, program{name, regexp.MustCompile(`[\w-]+\.(?:service|timer)\b`).FindAllString(row[1], -1)})
		code := regexp.MustCompile("`([^`]+)`").FindStringSubmatch(row[2])
		if i >= len(rebooters) || code == nil {
			continue
		}
		off := rebooters[i].off
		if off == "" {
			off = "systemctl mask --now " + rebooters[i].units[0]
		}
		if !strings.Contains(off, code[1]) {
			t.Errorf("%s: the agent's command is %q, which has no %q", name, off, code[1])
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(program{})); diff != "" {
		t.Errorf("(-agent +docs):\n%s", diff)
	}
}

const locksmithConf = "NAME=locksmithd\nSTRATEGY=reboot\nSTATE=running"

// coordinate starts another coordinator, which ends at the end of the test at the latest.
func coordinate(t *testing.T, root, content string) *hosttest.Coordinator {
	t.Helper()
	c, err := hosttest.Coordinate(root, content)
	must(t, err)
	t.Cleanup(c.End)
	return c
}

func confOf(root string) string {
	return filepath.Join(root, "run", "update-engine", "coordinator.conf")
}

func TestReadCoordinator_WhoHoldsTheFile_Behaviour57(t *testing.T) {
	nameless := &Coordinator{}
	for name, tc := range map[string]struct {
		content string
		want    *Coordinator
	}{
		"locksmithd":                     {locksmithConf, &Coordinator{Name: "locksmithd"}},
		"in any order":                   {"STATE=reboot-planned\nNAME=fluo\n", &Coordinator{Name: "fluo"}},
		"in quotes":                      {`NAME="my_tool-2.0"`, &Coordinator{Name: "my_tool-2.0"}},
		"in an unknown state":            {"NAME=fluo\nSTATE=asleep", &Coordinator{Name: "fluo"}},
		"a coordinator that is disabled": {"NAME=locksmithd\nSTATE=disabled", nil},
		"an empty file":                  {"", nameless},
		"no name":                        {"STATE=disabled", nameless},
		"a name of two words":            {"NAME='two words'", nameless},
		"a name that is a path":          {"NAME=../../etc", nameless},
		"a name that is not text":        {"NAME=\xff\xfe\x00", nameless},
		"a name that is far too long":    {"NAME=" + strings.Repeat("a", 65), nameless},
		"a name after a very long text":  {strings.Repeat("#", 5000) + "\nNAME=fluo", nameless},
		"no assignments at all":          {"Lorem ipsum", nameless},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			c := coordinate(t, root, tc.content)
			got, err := readCoordinator(root)
			must(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("while it runs (-want +got):\n%s", diff)
			}
			c.End()
			if got, err := readCoordinator(root); got != nil || err != nil {
				t.Errorf("after its end: %v, %v", got, err)
			}
		})
	}
}

func TestReadCoordinator_NoFile(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"", "run", "run/update-engine"} {
		must(t, os.MkdirAll(filepath.Join(root, folder), 0o750))
		if got, err := readCoordinator(root); got != nil || err != nil {
			t.Errorf("with folder %q: %v, %v", folder, got, err)
		}
	}
}

func TestReadCoordinator_OtherKindsOfFilesAreUnknown_Behaviour57(t *testing.T) {
	for name, tc := range map[string]struct {
		makes func(path string) error
		want  string
	}{
		"a folder":                       {func(path string) error { return os.Mkdir(path, 0o750) }, "it is not a regular file; remove it"},
		"a pipe":                         {func(path string) error { return syscall.Mkfifo(path, 0o600) }, "it is not a regular file; remove it"},
		"a link that leads out of /host": {func(path string) error { return os.Symlink("/etc/hostname", path) }, "path escapes from parent"},
		"a link to itself":               {func(path string) error { return os.Symlink("coordinator.conf", path) }, "too many levels of symbolic links"},
		"a folder that does not exist":   {func(path string) error { return os.Rename(makeFile(path), filepath.Dir(path)) }, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			must(t, os.MkdirAll(filepath.Dir(confOf(root)), 0o750))
			must(t, tc.makes(confOf(root)))
			got, err := readCoordinator(root)
			if got != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("read %v, %v", got, err)
			}
		})
	}
	if _, err := readCoordinator(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a host that is not mounted is not a host without a coordinator")
	}
}

// makeFile replaces the folder of path with a file.
func makeFile(path string) string {
	folder := filepath.Dir(path)
	_ = os.Remove(folder)
	_ = os.WriteFile(folder+".file", nil, 0o600) // A failure shows in the rename that follows.
	return folder + ".file"
}

func TestReadCoordinator_ALinkWithinTheHostIsFollowed(t *testing.T) {
	root := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, "elsewhere"), 0o750))
	must(t, os.Symlink("elsewhere", filepath.Join(root, "run")))
	coordinate(t, root, locksmithConf)
	if got, err := readCoordinator(root); err != nil || got == nil || got.Name != "locksmithd" {
		t.Errorf("read %v, %v", got, err)
	}
}

// Two readers at the same moment do not take each other for a coordinator.
func TestReadCoordinator_LooksAreNotInEachOthersWay(t *testing.T) {
	root := t.TempDir()
	coordinate(t, root, locksmithConf).End()
	other, err := os.Open(confOf(root))
	must(t, err)
	defer func() { _ = other.Close() }()
	if free, err := tryLock(other); !free || err != nil {
		t.Fatalf("looking: %v, %v", free, err)
	}
	if got, err := readCoordinator(root); got != nil || err != nil {
		t.Errorf("read %v, %v", got, err)
	}
}

func TestCoordinators_TheFileIsAskedToo_Behaviour57(t *testing.T) {
	_, units, coordinators := startUnits(t)
	fluo := coordinate(t, coordinators.HostRoot, "NAME=fluo\nSTATE=running")
	other, err := coordinators.Other(t.Context())
	if diff := cmp.Diff(&Coordinator{Name: "fluo"}, other); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	// A coordinator that was found is reported even if another check fails.
	units.Fail("org.freedesktop.DBus.Error.AccessDenied", "Nobody asks me")
	if other, err = coordinators.Other(t.Context()); other == nil || err == nil {
		t.Errorf("found %v, %v", other, err)
	}
	fluo.End()
	must(t, os.Remove(confOf(coordinators.HostRoot)))
	must(t, os.Mkdir(confOf(coordinators.HostRoot), 0o750))
	_, err = coordinators.Other(t.Context())
	const want = "asking systemd whether locksmithd.service is active: systemd answers org.freedesktop.DBus.Error.AccessDenied; " +
		"reading /run/update-engine/coordinator.conf of the host: it is not a regular file; remove it"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

// holderRoot is the environment variable that makes this program the other coordinator of
// TestReadCoordinator_AnotherProcess.
const holderRoot = "COORDINATOR_OF"

func TestReadCoordinator_AnotherProcess_Behaviour57(t *testing.T) {
	if root := os.Getenv(holderRoot); root != "" {
		coordinate(t, root, locksmithConf)
		_, _ = os.Stdout.WriteString("holds\n")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until it is killed
		return
	}
	root := t.TempDir()
	holder := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	holder.Env = append(os.Environ(), holderRoot+"="+root)
	stdin, err := holder.StdinPipe()
	must(t, err)
	defer func() { _ = stdin.Close() }()
	stdout, err := holder.StdoutPipe()
	must(t, err)
	must(t, holder.Start())
	_, err = stdout.Read(make([]byte, 1))
	must(t, err)
	if got, err := readCoordinator(root); err != nil || got == nil || got.Name != "locksmithd" {
		t.Errorf("while it runs: %v, %v", got, err)
	}
	must(t, holder.Process.Kill())
	_ = holder.Wait() // It was killed.
	if got, err := readCoordinator(root); got != nil || err != nil {
		t.Errorf("after it was killed: %v, %v", got, err)
	}
}

func FuzzParseCoordinator(f *testing.F) {
	f.Add(locksmithConf)
	f.Add("NAME=\"a\\b\"\nSTATE='disabled'\n#")
	f.Fuzz(func(t *testing.T, content string) {
		if c := parseCoordinator(content); c != nil && c.Name != "" && !isCoordinatorName(c.Name) {
			t.Errorf("%q is reported as a name", c.Name)
		}
	})
}
