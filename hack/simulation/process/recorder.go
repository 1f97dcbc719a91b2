package process

import "k8s.io/apimachinery/pkg/runtime"

// Recorder counts events, by nothing: what they report is tested elsewhere.
type Recorder struct{ Counts *Counts }

// Eventf implements events.EventRecorder.
//
//nolint:revive // the arguments are the interface's
func (r Recorder) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) { r.Counts.Add("events") }
