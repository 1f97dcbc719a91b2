package service

import (
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
)

// listening takes any body and counts whose signals it received.
type listening struct {
	recorder
	owners, strangers int
}

func (l *listening) Receive(_ string, _ []any, fromOwner bool) error {
	if fromOwner {
		l.owners++
	} else {
		l.strangers++
	}
	return nil
}

// FuzzReceive: whatever arrives on the bus, nobody is taken for the service, or as the bus, who is not.
func FuzzReceive(f *testing.F) {
	f.Add(":1.1", "/engine", "org.example.Engine.Status", uint64(11), false)
	f.Add(":1.9", "/engine", "org.example.Engine.Status", uint64(11), true)
	f.Add("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus.NameOwnerChanged", uint64(11), false)
	f.Add("", "", "org.example.Engine.", uint64(0), false)
	f.Fuzz(func(t *testing.T, sender, path, name string, sequence uint64, ownerOnly bool) {
		var received listening
		s := session{Link: Link{Owner: ":1.1", Found: 10}, read: 10, watch: Watch{
			Path: "/engine", Interface: "org.example.Engine", Signals: []string{"Status"}, OwnerOnly: ownerOnly,
		}, listener: &received}
		asks := s.receive(t.Context(), &dbus.Signal{
			Sender: sender, Path: dbus.ObjectPath(path), Name: name, Sequence: dbus.Sequence(sequence),
		})
		if asks && (sender != busDaemon || sequence <= 10) {
			t.Errorf("asks again because of %q at %d", sender, sequence)
		}
		if received.owners > 0 && (sender != ":1.1" || sequence < 10) || received.strangers > 0 && (ownerOnly || sender == ":1.1") {
			t.Errorf("received %+v from %q at %d", received, sender, sequence)
		}
		if received.owners+received.strangers > 0 && (path != "/engine" || !strings.HasSuffix(name, ".Status")) {
			t.Errorf("received %s of %s", name, path)
		}
	})
}
