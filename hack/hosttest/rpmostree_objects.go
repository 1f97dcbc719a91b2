package hosttest

import (
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
)

// Names of the D-Bus errors of the fake. As in the real daemon, GLib generates the name of the
// error for a transaction that is under way.
const (
	errNoSuchProperty = "org.freedesktop.DBus.Error.InvalidArgs"
	errBusy           = "org.gtk.GDBus.UnmappedGError.Quark._g_2dio_2derror_2dquark.Code26"
	errFailed         = "org.gtk.GDBus.UnmappedGError.Quark._g_2dio_2derror_2dquark.Code0"
)

// export puts the objects Sysroot and one operating system on the connection.
func (r *RPMOSTree) export(conn *dbus.Conn) error {
	sysroot := map[string]any{"RegisterClient": r.registerClient, "Reload": r.reload}
	system := map[string]any{"Upgrade": r.handleUpgrade, "FinalizeDeployment": r.handleFinalize, "AutomaticUpdateTrigger": r.automaticUpdateTrigger}
	read := map[string]any{"Get": r.get, "GetAll": r.getAll}
	return errors.Join(
		conn.ExportMethodTable(sysroot, sysrootPath, sysrootInterface),
		conn.ExportMethodTable(read, sysrootPath, propertiesIface),
		conn.ExportMethodTable(system, osPath, osInterface),
		r.watchClients(conn),
	)
}

// propertiesOf returns the properties of an interface. The caller holds the lock.
func (r *RPMOSTree) propertiesOf(iface string) map[string]dbus.Variant {
	first := func(Deployment) bool { return true }
	booted := func(d Deployment) bool { return d.Booted }
	method, sender, path, address := "", "", "", ""
	if t := r.transaction; t != nil {
		method, sender, path, address = t.method, t.initiator, string(osPath), t.address
	}
	switch iface {
	case sysrootInterface:
		all := make([]map[string]dbus.Variant, 0, len(r.deployments))
		for _, d := range r.deployments {
			all = append(all, d.properties())
		}
		return map[string]dbus.Variant{
			"Booted":                dbus.MakeVariant(osPath),
			"Path":                  dbus.MakeVariant("/"),
			"ActiveTransaction":     dbus.MakeVariant(struct{ Method, Sender, Path string }{method, sender, path}),
			"ActiveTransactionPath": dbus.MakeVariant(address),
			"AutomaticUpdatePolicy": dbus.MakeVariant(r.policy),
			"Deployments":           dbus.MakeVariant(all),
		}
	case osInterface:
		return map[string]dbus.Variant{
			"BootedDeployment":   dbus.MakeVariant(orNone(r.deployments, booted)),
			"DefaultDeployment":  dbus.MakeVariant(orNone(r.deployments, first)),
			"RollbackDeployment": dbus.MakeVariant(map[string]dbus.Variant{}),
		}
	}
	return map[string]dbus.Variant{}
}

// get returns a value of type any, which godbus sends as the type that it holds. So it can also
// return garbled replies.
func (r *RPMOSTree) get(iface, name string) (any, *dbus.Error) {
	value, failure := r.look(iface, name)
	var late func()
	r.set(func() { late, r.late = r.late, nil })
	if late != nil {
		late()
	}
	return value, failure
}

func (r *RPMOSTree) look(iface, name string) (any, *dbus.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	if r.failure != nil {
		return "", r.failure
	}
	if name == "Deployments" && r.garbled != nil {
		return r.garbled, nil
	}
	value, found := r.propertiesOf(iface)[name]
	if !found {
		return "", namedError(errNoSuchProperty, fmt.Sprintf("No such property %q", name))
	}
	return value, nil
}

func (r *RPMOSTree) getAll(iface string) (map[string]dbus.Variant, *dbus.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	return r.propertiesOf(iface), r.failure
}

func (r *RPMOSTree) registerClient(sender dbus.Sender, options map[string]dbus.Variant) *dbus.Error {
	r.called("RegisterClient")
	id, _ := options["id"].Value().(string)
	r.set(func() { r.clients[string(sender)] = id })
	return nil
}

func (r *RPMOSTree) reload() *dbus.Error {
	r.called("Reload")
	return nil
}
