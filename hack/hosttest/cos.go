package hosttest

import (
	"math"

	"github.com/godbus/dbus/v5"
	"google.golang.org/protobuf/encoding/protowire"
)

// Names of update_engine of Container-Optimized OS on the bus.
const (
	cosName      = "org.chromium.UpdateEngine"
	cosPath      = dbus.ObjectPath("/org/chromium/UpdateEngine")
	cosInterface = "org.chromium.UpdateEngineInterface"
)

// COSOp is an operation of update_engine of COS, with the numbers of update_engine.Operation.
type COSOp int32

// Operations of COS' update_engine.
const (
	COSCheckingForUpdate COSOp = 1
	COSUpdateAvailable   COSOp = 2
	COSDownloading       COSOp = 3
	COSVerifying         COSOp = 4
	COSFinalizing        COSOp = 5
	COSUpdatedNeedReboot COSOp = 6
)

// text returns the operation as GetStatus spells it on platforms before GetStatusAdvanced.
func (o COSOp) text() string {
	names := []string{
		"IDLE", "CHECKING_FOR_UPDATE", "UPDATE_AVAILABLE", "DOWNLOADING", "VERIFYING", "FINALIZING", "UPDATED_NEED_REBOOT",
		"REPORTING_ERROR_EVENT", "ATTEMPTING_ROLLBACK", "DISABLED", "NEED_PERMISSION_TO_UPDATE", "CLEANUP_PREVIOUS_UPDATE",
		"UPDATED_BUT_DEFERRED",
	}
	if o < 0 || int(o) >= len(names) {
		return "UPDATE_STATUS_ERROR"
	}
	return "UPDATE_STATUS_" + names[o]
}

// cosNoVersion is the version that update_engine of COS reports while it does not know one.
const cosNoVersion = "0.0.0.0"

// COSStatus has the relevant fields of update_engine.StatusResult.
type COSStatus struct {
	// LastChecked is in seconds since 1970, or 0 for never.
	LastChecked int64
	// Progress of the download, 0 to 1.
	Progress float64
	// Op is one of the COS operations.
	Op COSOp
	// Version that is being installed, or is staged.
	Version string
	// Size of the download in bytes.
	Size int64
	// IsInstall reports whether downloadable content is being installed instead of a system update.
	IsInstall bool
}

// COSNeedReboot is the status once a version is staged.
func COSNeedReboot(version string) COSStatus {
	return COSStatus{Op: COSUpdatedNeedReboot, Version: version}
}

// message returns the status as protobuf encodes it. Zero values are left out.
func (s COSStatus) message() []byte {
	var b []byte
	number := func(field protowire.Number, value uint64) {
		if value != 0 {
			b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), value)
		}
	}
	number(1, uint64(s.LastChecked))
	if s.Progress != 0 {
		b = protowire.AppendFixed64(protowire.AppendTag(b, 2, protowire.Fixed64Type), math.Float64bits(s.Progress))
	}
	number(3, uint64(s.Op))
	if s.Version != "" {
		b = protowire.AppendString(protowire.AppendTag(b, 4, protowire.BytesType), s.Version)
	}
	number(5, uint64(s.Size))
	number(7, protowire.EncodeBool(s.IsInstall))
	return b
}

// body returns the status as GetStatus and StatusUpdate report it, which do not know IsInstall.
func (s COSStatus) body() []any {
	return Status{LastChecked: s.LastChecked, Progress: s.Progress, Op: s.Op.text(), Version: s.Version, Size: s.Size}.body()
}

// COSPlatform is a generation of COS. They differ in how update_engine reports its status.
type COSPlatform int

const (
	// COSCurrent has only GetStatusAdvanced and StatusUpdateAdvanced.
	COSCurrent COSPlatform = iota
	// COSTransitional has the old ones, too.
	COSTransitional
	// COSBeforeAdvanced has only the old ones, GetStatus and StatusUpdate.
	COSBeforeAdvanced
)

// COSUpdateEngine is a fake update_engine of COS. By itself it only answers calls, and broadcasts
// its status when it starts.
type COSUpdateEngine struct {
	engine[COSStatus]

	platform COSPlatform
	crashes  bool
	driven   int
}

// StartCOSUpdateEngine puts an idle update_engine of COS on the bus.
func StartCOSUpdateEngine(b *Bus, platform COSPlatform) (*COSUpdateEngine, error) {
	e := &COSUpdateEngine{engine: engine[COSStatus]{service: service{bus: b, name: cosName}}, platform: platform}
	return e, e.Start()
}

// Start brings update_engine back after Stop or a restart of the bus. Like the real one it
// broadcasts its status as soon as it has its name. A need survives, but its version does not.
func (e *COSUpdateEngine) Start() error {
	after := COSStatus{Version: cosNoVersion}
	if read(&e.guarded, func() bool { return e.status.Op == COSUpdatedNeedReboot && !e.status.IsInstall }) {
		after.Op = COSUpdatedNeedReboot
	}
	e.SetStatus(after)
	if err := e.service.start(e.export); err != nil {
		return err
	}
	return e.broadcast(after)
}

// Emit changes the status and broadcasts it.
func (e *COSUpdateEngine) Emit(status COSStatus) error {
	e.SetStatus(status)
	return e.broadcast(status)
}

// EmitBody broadcasts a signal of the engine with any body, valid or not, and leaves the status as
// it is.
func (e *COSUpdateEngine) EmitBody(member string, body ...any) error {
	return e.service.signal(cosPath, cosInterface+"."+member, body)
}

// CrashWhenAsked takes update_engine off the bus at the next GetStatusAdvanced, before it replies.
func (e *COSUpdateEngine) CrashWhenAsked() { e.set(func() { e.crashes = true }) }

// DrivingCalls counts the calls that make the engine do something. The agent must never make one.
func (e *COSUpdateEngine) DrivingCalls() int { return read(&e.guarded, func() int { return e.driven }) }

func (e *COSUpdateEngine) broadcast(status COSStatus) error {
	if e.platform != COSBeforeAdvanced {
		if err := e.EmitBody("StatusUpdateAdvanced", status.message()); err != nil {
			return err
		}
	}
	if e.platform != COSCurrent {
		return e.EmitBody("StatusUpdate", status.body()...)
	}
	return nil
}

func (e *COSUpdateEngine) export(conn *dbus.Conn) error {
	methods := map[string]any{
		"SetStatus":              func(int32) *dbus.Error { return e.drive() },
		"ResetStatus":            e.resetStatus,
		"Update":                 func([]byte) *dbus.Error { return e.drive() },
		"AttemptUpdate":          func(string, string) *dbus.Error { return e.drive() },
		"AttemptUpdateWithFlags": func(string, string, int32) *dbus.Error { return e.drive() },
		"RebootIfNeeded":         e.drive,
		"ApplyDeferredUpdate":    e.drive,
	}
	if e.platform != COSBeforeAdvanced {
		methods["GetStatusAdvanced"] = e.getStatusAdvanced
	}
	if e.platform != COSCurrent {
		methods["GetStatus"] = e.getStatus
	}
	return conn.ExportMethodTable(methods, cosPath, cosInterface)
}

func (e *COSUpdateEngine) getStatusAdvanced() ([]byte, *dbus.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked++
	if e.crashes {
		e.service.stop()
	}
	if e.garbled {
		return []byte("\xff\xff"), nil
	}
	return e.status.message(), e.failure
}

func (e *COSUpdateEngine) getStatus() (lastChecked, progress, op, version, size any, failure *dbus.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked++
	body := e.status.body()
	return body[0], body[1], body[2], body[3], body[4], e.failure
}

// resetStatus forgets a staged update without a signal.
func (e *COSUpdateEngine) resetStatus() *dbus.Error {
	e.SetStatus(COSStatus{Version: cosNoVersion})
	return nil
}

func (e *COSUpdateEngine) drive() *dbus.Error {
	e.set(func() { e.driven++ })
	return nil
}

// ForgeCOS emits a StatusUpdateAdvanced of COS from a connection that is not update_engine's.
func (b *Bus) ForgeCOS(status COSStatus) error {
	return b.forge(cosPath, cosInterface+".StatusUpdateAdvanced", []any{status.message()})
}
