package hosttest

import "github.com/godbus/dbus/v5"

// Names of update_engine of Flatcar and CoreOS on the bus.
const (
	engineName      = "com.coreos.update1"
	enginePath      = dbus.ObjectPath("/com/coreos/update1")
	engineInterface = "com.coreos.update1.Manager"
)

// Operations of update_engine, as GetStatus and StatusUpdate spell them.
const (
	OpIdle              = "UPDATE_STATUS_IDLE"
	OpCheckingForUpdate = "UPDATE_STATUS_CHECKING_FOR_UPDATE"
	OpUpdateAvailable   = "UPDATE_STATUS_UPDATE_AVAILABLE"
	OpDownloading       = "UPDATE_STATUS_DOWNLOADING"
	OpFinalizing        = "UPDATE_STATUS_FINALIZING"
	OpUpdatedNeedReboot = "UPDATE_STATUS_UPDATED_NEED_REBOOT"
)

// noVersion is the version that update_engine reports while it does not know one.
const noVersion = "0.0.0"

// Status is the body of GetStatus and StatusUpdate, in the order of their fields.
type Status struct {
	// LastChecked is in seconds since 1970, or 0 for never.
	LastChecked int64
	// Progress of the download, 0 to 1.
	Progress float64
	// Op is one of the Op constants.
	Op string
	// Version that is being installed, or is staged.
	Version string
	// Size of the download in bytes.
	Size int64
}

// Idle returns the status after a boot.
func Idle() Status { return Status{Op: OpIdle, Version: noVersion} }

// NeedReboot returns the status once a version is staged.
func NeedReboot(version string) Status { return Status{Op: OpUpdatedNeedReboot, Version: version} }

func (s Status) body() []any { return []any{s.LastChecked, s.Progress, s.Op, s.Version, s.Size} }

// engine is the common part of both kinds of update_engine: the status, and how it answers calls.
type engine[S any] struct {
	guarded

	service service
	status  S
	failure *dbus.Error
	garbled bool
	asked   int
}

// Stop takes update_engine off the bus, as when it crashes.
func (e *engine[S]) Stop() { e.service.stop() }

// SetStatus changes the status without a broadcast.
func (e *engine[S]) SetStatus(status S) { e.set(func() { e.status = status }) }

// FailStatus makes the engine answer with a D-Bus error. An empty name lets it answer again.
func (e *engine[S]) FailStatus(name, message string) {
	e.set(func() { e.failure = namedError(name, message) })
}

// GarbleStatus makes replies malformed, or valid again: GetStatus with other types,
// GetStatusAdvanced with bytes that are not a protobuf message.
func (e *engine[S]) GarbleStatus(garbled bool) { e.set(func() { e.garbled = garbled }) }

// StatusCalls counts the calls of GetStatus and GetStatusAdvanced that were answered.
func (e *engine[S]) StatusCalls() int { return read(&e.guarded, func() int { return e.asked }) }

// UpdateEngine is a fake update_engine. By itself it only answers calls, and broadcasts its status
// when it starts.
type UpdateEngine struct {
	engine[Status]

	attempts int
	attempt  func()
}

// StartUpdateEngine puts an idle update_engine on the bus.
func StartUpdateEngine(b *Bus) (*UpdateEngine, error) {
	e := &UpdateEngine{engine: engine[Status]{service: service{bus: b, name: engineName}}}
	return e, e.Start()
}

// Start brings update_engine back after Stop or a restart of the bus. Like the real one it
// broadcasts its status as soon as it has its name. A need survives, by a marker below /run, but
// its version does not.
func (e *UpdateEngine) Start() error {
	after := Idle()
	if read(&e.guarded, func() bool { return e.status.Op == OpUpdatedNeedReboot }) {
		after = NeedReboot(noVersion)
	}
	e.SetStatus(after)
	if err := e.service.start(e.export); err != nil {
		return err
	}
	return e.EmitBody(after.body()...)
}

// Emit changes the status and broadcasts it.
func (e *UpdateEngine) Emit(status Status) error {
	e.SetStatus(status)
	return e.EmitBody(status.body()...)
}

// EmitBody broadcasts a StatusUpdate of the engine with any body, valid or not, and leaves the
// status as it is.
func (e *UpdateEngine) EmitBody(body ...any) error {
	return e.service.signal(enginePath, engineInterface+".StatusUpdate", body)
}

// AttemptUpdateCalls counts the calls of AttemptUpdate. The agent must never make one.
func (e *UpdateEngine) AttemptUpdateCalls() int {
	return read(&e.guarded, func() int { return e.attempts })
}

// OnAttempt sets what AttemptUpdate does besides being counted. It must not wait for the engine.
func (e *UpdateEngine) OnAttempt(attempt func()) { e.set(func() { e.attempt = attempt }) }

func (e *UpdateEngine) export(conn *dbus.Conn) error {
	return conn.ExportMethodTable(map[string]any{
		"GetStatus":     e.getStatus,
		"ResetStatus":   e.resetStatus,
		"AttemptUpdate": e.attemptUpdate,
	}, enginePath, engineInterface)
}

// getStatus returns values of type any, which godbus sends as the type that they hold. So it can
// also return garbled replies.
func (e *UpdateEngine) getStatus() (lastChecked, progress, op, version, size any, failure *dbus.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked++
	s := e.status
	if e.garbled {
		return s.Op, s.Version, s.LastChecked, s.Progress, s.Size, nil
	}
	return s.LastChecked, s.Progress, s.Op, s.Version, s.Size, e.failure
}

// resetStatus forgets a staged update and, like the real one, does not send a signal.
func (e *UpdateEngine) resetStatus() *dbus.Error {
	e.SetStatus(Idle())
	return nil
}

func (e *UpdateEngine) attemptUpdate() *dbus.Error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.attempts++
	if e.attempt != nil {
		e.attempt()
	}
	return nil
}

// namedError returns a D-Bus error with a text, or nil if the name is empty.
func namedError(name, message string) *dbus.Error {
	if name == "" {
		return nil
	}
	return dbus.NewError(name, []any{message})
}

// SendNeedReboot does what `locksmithctl send-need-reboot` does: it broadcasts one StatusUpdate
// with a need on its own connection. So the sender is not update_engine, which does not know the
// need.
func (b *Bus) SendNeedReboot() error {
	return b.Broadcast(NeedReboot("").body()...)
}

// Broadcast emits a StatusUpdate with any body, valid or not, from a new connection.
func (b *Bus) Broadcast(body ...any) error {
	return b.forge(enginePath, engineInterface+".StatusUpdate", body)
}
