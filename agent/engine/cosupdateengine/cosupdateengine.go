// Package cosupdateengine watches the update_engine of Container-Optimized OS,
// org.chromium.UpdateEngine on the system bus, for an update that waits for a reboot. It only reads
// and listens. It never requests an update, a reset or a reboot.
package cosupdateengine

import (
	"context"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/service"
)

// Name is the engine's name in flags, reports and metrics.
const Name = "cos-update-engine"

// title names the service for people. Flatcar's service has the same name, and both may be reported
// together.
const title = "COS update_engine"

// https://chromium.googlesource.com/aosp/platform/system/update_engine/ (dbus_bindings). Platforms
// up to about 2020 have GetStatus and StatusUpdate; later ones have the advanced methods too.
const (
	busName              = "org.chromium.UpdateEngine"
	objectPath           = dbus.ObjectPath("/org/chromium/UpdateEngine")
	busInterface         = "org.chromium.UpdateEngineInterface"
	getStatusAdvanced    = "GetStatusAdvanced"
	getStatus            = "GetStatus"
	statusUpdateAdvanced = "StatusUpdateAdvanced"
	statusUpdate         = "StatusUpdate"
)

// Engine watches update_engine of COS.
type Engine struct{ service.Bus }

// Run implements source.Engine. It survives restarts and the absence of both update_engine and the
// bus.
func (e *Engine) Run(ctx context.Context, report func(engine.Report)) {
	// Only signals of the owner count. To test an agent, run update_engine_client --set_status=6,
	// which makes update_engine itself send the signal.
	service.Watch{
		Bus: e.Bus, Title: title, Name: busName, Path: objectPath, Interface: busInterface,
		Signals: []string{statusUpdateAdvanced, statusUpdate}, OwnerOnly: true,
	}.Run(ctx, &listener{status: resumed(e.Before), changes: e.Changes(report)})
}

// listener keeps the last status across connections and reports what changes.
type listener struct {
	status  status
	changes engine.Changes
	// plain is true if the platform has only GetStatus and StatusUpdate. On platforms with both,
	// the plain ones are ignored: they do not distinguish an update from an install of downloadable
	// content.
	plain bool
}

// Receive handles a StatusUpdateAdvanced, or a StatusUpdate on a platform without the advanced one.
func (l *listener) Receive(member string, body []any, _ bool) error {
	switch {
	case member == statusUpdateAdvanced:
		return l.take(decodeAdvanced)(body)
	case l.plain:
		return l.take(decodePlain)(body)
	}
	return nil
}

// Read calls GetStatusAdvanced, or GetStatus on a platform without it.
func (l *listener) Read(ctx context.Context, call service.Call) error {
	err := call(ctx, getStatusAdvanced, l.take(decodeAdvanced))
	l.plain = service.IsUnknownMethod(err)
	if l.plain {
		err = call(ctx, getStatus, l.take(decodePlain))
	}
	return err
}

// Lost reports that update_engine cannot be queried.
func (l *listener) Lost(why string, presence engine.Presence) {
	l.changes.Reach(presence, why)
	l.changes.Update(l.status.report())
}

func (l *listener) take(decode func(body []any) (status, error)) func(body []any) error {
	return func(body []any) error {
		received, err := decode(body)
		if err != nil {
			return err
		}
		l.status = l.status.next(received)
		l.changes.Reach(engine.Answering, "")
		l.changes.Update(l.status.report())
		return nil
	}
}
