package host

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
	"github.com/reboot-operator/reboot-operator/hack/document"
)

var locksmithd = &Coordinator{Name: "locksmithd", Unit: "locksmithd.service"}

// startUnits starts a bus with a systemd on it, and what looks for coordinators on a host that has no coordinator.conf.
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
		"a word of a later systemd": locksmithd,
		"inactive":                  nil, "failed": nil, nil: nil,
	} {
		units.Set("locksmithd.service", state)
		got, err := coordinators.Other(t.Context())
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ActiveState %v (-want +got):\n%s", state, diff)
		}
	}
}

func TestCoordinators_AnotherUnitIsNobody(t *testing.T) {
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
	// systemd's package makes the bus try /bin/false where another init runs.
	must(t, bus.MakeActivatable("org.freedesktop.systemd1"))
	if other, err := coordinators.Other(t.Context()); other != nil || err != nil {
		t.Errorf("found %v, %v", other, err)
	}
}

// Brokers differ in what they call it.
func TestCoordinators_NobodyToAskIsNobody(t *testing.T) {
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
		"there is no bus": {func(b *hosttest.Bus, _ *hosttest.Units) { _ = b.Stop() }, "connecting to the bus"},
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

// docs/hosts.md lists each program in the order of the table, with its units, and with what its command sets.
func TestRebooters_AreThoseOfTheDocs(t *testing.T) {
	rows, err := document.Table(filepath.Join("..", "..", "docs", "hosts.md"), "Who else reboots a host")
	must(t, err)
	type entry struct {
		name  string
		units []string
	}
	var want, got []entry
	for _, r := range rebooters {
		want = append(want, entry{r.name, r.units})
	}
	for i, row := range rows {
		name, _, _ := strings.Cut(row[0], " (")
		got = append(got, entry{name, regexp.MustCompile(`[\w-]+\.(?:service|timer)\b`).FindAllString(row[1], -1)})
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
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(entry{})); diff != "" {
		t.Errorf("(-agent +docs):\n%s", diff)
	}
}
