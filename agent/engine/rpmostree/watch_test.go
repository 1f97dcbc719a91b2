package rpmostree

import (
	"testing"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/engine/service"
)

func TestIsOccasion(t *testing.T) {
	value := func(names ...string) map[string]dbus.Variant {
		m := map[string]dbus.Variant{}
		for _, name := range names {
			m[name] = dbus.MakeVariant("of whatever type")
		}
		return m
	}
	cases := map[string]struct {
		body []any
		want bool
	}{
		"the deployments":                        {[]any{sysrootInterface, value("Path", "Deployments"), []string{}}, true},
		"another booted system":                  {[]any{sysrootInterface, value("Booted"), []string{}}, true},
		"invalidated deployments":                {[]any{sysrootInterface, value(), []string{"Deployments"}}, true},
		"a transaction":                          {[]any{sysrootInterface, value("ActiveTransaction", "ActiveTransactionPath"), []string{}}, false},
		"the default deployment":                 {[]any{osInterface, value("DefaultDeployment"), []string{}}, true},
		"the booted deployment":                  {[]any{osInterface, value(), []string{"BootedDeployment"}}, true},
		"a cached update (behaviour 11)":         {[]any{osInterface, value("CachedUpdate", "HasCachedUpdateRpmDiff"), []string{}}, false},
		"an invalidated cached update":           {[]any{osInterface, value(), []string{"CachedUpdate"}}, false},
		"nothing":                                {[]any{sysrootInterface, value(), []string{}}, false},
		"a property name of the other interface": {[]any{osInterface, value("Deployments"), []string{}}, false},
		"an irrelevant interface":                {[]any{"a.b", value("Deployments"), []string{"Deployments"}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := isOccasion(tc.body)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("occasion: %v", got)
			}
		})
	}
}

// FuzzIsOccasion builds bodies of any length from values of any type.
func FuzzIsOccasion(f *testing.F) {
	f.Add(sysrootInterface, "Deployments", []byte{0, 1, 2})
	f.Add(osInterface, "CachedUpdate", []byte{0, 1, 2})
	f.Add("a", "\xff", []byte{0, 1, 2, 3})
	f.Add("a", "b", []byte{4, 5, 6})
	f.Fuzz(func(t *testing.T, iface, name string, shape []byte) {
		values := []any{
			iface,
			map[string]dbus.Variant{name: dbus.MakeVariant(name)},
			[]string{name},
			nil,
			map[string]string{},
			[]any{iface},
			dbus.MakeVariant(iface), true,
		}
		body := make([]any, 0, len(shape))
		for _, b := range shape {
			body = append(body, values[int(b)%len(values)])
		}
		got, err := isOccasion(body)
		if got && (err != nil || iface != sysrootInterface && iface != osInterface) {
			t.Errorf("%v, %v of %#v", got, err, body)
		}
		if err == nil && len(body) != 3 {
			t.Errorf("read %#v", body)
		}
	})
}

const (
	busDaemon    = "org.freedesktop.DBus"
	ownerChanged = busDaemon + ".NameOwnerChanged"
)

// FuzzReceive shows that only signals of the daemon and of the bus itself trigger a read of the
// deployments.
func FuzzReceive(f *testing.F) {
	f.Add(":1.1", propertiesChanged, "Deployments", uint64(11), []byte{0, 1, 2})
	f.Add(busDaemon, ownerChanged, "", uint64(11), []byte{3, 3, 3})
	f.Add(busDaemon, ownerChanged, ":1.7", uint64(11), []byte{3, 3, 4})
	f.Add(":1.9", propertiesChanged, "Deployments", uint64(11), []byte{0, 1, 2})
	f.Fuzz(func(t *testing.T, sender, name, text string, sequence uint64, shape []byte) {
		values := []any{
			sysrootInterface, map[string]dbus.Variant{text: dbus.MakeVariant(text)}, []string{text}, text, int32(1), nil,
		}
		body := make([]any, 0, len(shape))
		for _, b := range shape {
			body = append(body, values[int(b)%len(values)])
		}
		w := watch{engine: &Engine{}, Link: service.Link{Owner: ":1.1", Found: 10}, read: 10}
		again := w.receive(t.Context(), &dbus.Signal{Sender: sender, Name: name, Body: body, Sequence: dbus.Sequence(sequence)})
		if again && (sender != ":1.1" && sender != busDaemon || sequence <= 10) {
			t.Errorf("reads again because of %q at %d", sender, sequence)
		}
		if sender != busDaemon && w.Owner != ":1.1" {
			t.Errorf("%q made %q the daemon", sender, w.Owner)
		}
	})
}
