package rpmostree

import (
	"testing"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/engine/service"
)

const (
	busDaemon    = "org.freedesktop.DBus"
	ownerChanged = busDaemon + ".NameOwnerChanged"
)

// FuzzReceive: whatever arrives on the bus, only the daemon and the bus itself are an occasion to read the deployments.
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
