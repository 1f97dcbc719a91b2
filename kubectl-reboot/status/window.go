package status

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// Window says whether a reboot may start now, and until when.
type Window struct {
	State v1alpha1.WindowState `json:"state"`
	// Name is the name of the window or blackout, if any.
	Name     string `json:"name,omitempty"`
	Blackout bool   `json:"blackout,omitempty"`
	// Until is the time when the state changes, or zero if it does not change by itself or within
	// 400 days.
	Until time.Time `json:"until,omitzero"`
}

func windowOf(policy *v1alpha1.RebootPolicy, state v1alpha1.WindowState, w window.State) Window {
	s := Window{State: state, Name: w.Name, Blackout: w.Blackout}
	switch state {
	case v1alpha1.WindowInvalid, v1alpha1.WindowHalted:
		return Window{State: state}
	case v1alpha1.WindowPaused:
		s = Window{State: state, Until: policy.Spec.Pause.End()}
	case v1alpha1.WindowClosed:
		s.Until = w.OpensAt
	case v1alpha1.WindowOpen, v1alpha1.WindowAlways, v1alpha1.WindowUrgent:
		s.Until = w.ClosesAt
	}
	return s
}

// windowCell says whether a reboot may start, with the most important part first because the end
// may be cut off.
func (p Policy) windowCell(zone *time.Location, now time.Time) (string, terminal.Style) {
	text, style := p.WindowText(func(t time.Time) string { return moment.At(t, now, zone) }), terminal.Wait
	switch state := p.Window.State; {
	case p.Mode == v1alpha1.ModeDryRun:
		style = terminal.Quiet
	case state == v1alpha1.WindowInvalid, state == v1alpha1.WindowHalted:
		style = terminal.Bad
	case state == v1alpha1.WindowAlways, state == v1alpha1.WindowOpen, state == v1alpha1.WindowUrgent:
		style = terminal.Good
	}
	if instant := p.Window.Until; !instant.IsZero() {
		text += ", " + moment.Until(instant, now)
	}
	return text, style
}

// WindowText says whether a reboot may start, and until when, formatted by write.
func (p Policy) WindowText(write func(time.Time) string) string {
	t, until := "", ""
	if !p.Window.Until.IsZero() {
		t = write(p.Window.Until)
		until = " until " + t
	}
	var text string
	switch state := p.Window.State; {
	case state == v1alpha1.WindowInvalid:
		text = "invalid spec"
	case state == v1alpha1.WindowHalted:
		text = "halted"
	case state == v1alpha1.WindowPaused:
		text = "paused" + until
	case state == v1alpha1.WindowUrgent:
		text = "urgent" + until
	case p.Window.Blackout:
		text = "blackout " + p.Window.Name + until
	case state == v1alpha1.WindowAlways:
		text = "always open" + until
	case state == v1alpha1.WindowOpen:
		text = "open" + until
	case t == "":
		text = "closed, none opens in 400 days"
	default:
		text = "opens " + t
	}
	if p.Mode == v1alpha1.ModeDryRun {
		return "dry run; " + text
	}
	return text
}
