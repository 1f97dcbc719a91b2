package hosttest

import (
	"errors"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
)

func TestCOSUpdateEngine_UsesProtobuf(t *testing.T) {
	bus := StartFor(t)
	engine, err := StartCOSUpdateEngine(bus, COSCurrent)
	must(t, err)
	engine.SetStatus(COSStatus{
		LastChecked: 1_700_000_000, Progress: 0.5, Op: COSUpdatedNeedReboot, Version: "17800.147.54", Size: 201337,
		IsInstall: true, LastAttemptError: 37,
	})
	conn, err := bus.Connect()
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	var got []byte
	must(t, conn.Object(cosName, cosPath).Call(cosInterface+".GetStatusAdvanced", 0).Store(&got))
	want := "\x08\x80\xe2\xcf\xaa\x06" + "\x11\x00\x00\x00\x00\x00\x00\xe0\x3f" + "\x18\x06" + "\x22\x0c17800.147.54" +
		"\x28\xf9\xa4\x0c" + "\x38\x01" + "\x50\x25"
	if diff := cmp.Diff([]byte(want), got); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	// proto3 leaves out what is zero, so an idle engine reports next to nothing.
	engine.SetStatus(COSStatus{})
	must(t, conn.Object(cosName, cosPath).Call(cosInterface+".GetStatusAdvanced", 0).Store(&got))
	if len(got) > 0 {
		t.Errorf("an idle engine shows %x", got)
	}
}

func TestCOSUpdateEngine_PlatformsDifferInHowTheyReportTheirStatus(t *testing.T) {
	const advanced, plain = cosInterface + ".StatusUpdateAdvanced", cosInterface + ".StatusUpdate"
	cases := map[string]struct {
		platform                COSPlatform
		knowsAdvanced, knowsOld bool
		signals                 []string
	}{
		"current":         {COSCurrent, true, false, []string{advanced}},
		"transitional":    {COSTransitional, true, true, []string{advanced, plain}},
		"before advanced": {COSBeforeAdvanced, false, true, []string{plain}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bus := StartFor(t)
			engine, err := StartCOSUpdateEngine(bus, tc.platform)
			must(t, err)
			conn, err := bus.Connect()
			must(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			knows := func(method string) bool {
				err := conn.Object(cosName, cosPath).Call(cosInterface+"."+method, 0).Err
				refusal, _ := errors.AsType[dbus.Error](err)
				return refusal.Name != "org.freedesktop.DBus.Error.UnknownMethod"
			}
			if knows("GetStatusAdvanced") != tc.knowsAdvanced || knows("GetStatus") != tc.knowsOld {
				t.Errorf("knows GetStatusAdvanced: %v, GetStatus: %v", knows("GetStatusAdvanced"), knows("GetStatus"))
			}
			signals := make(chan *dbus.Signal, 16)
			conn.Signal(signals)
			must(t, conn.AddMatchSignal(dbus.WithMatchInterface(cosInterface)))
			must(t, engine.Emit(COSNeedReboot("17800.147.54")))
			var got []string
			for len(got) < len(tc.signals) {
				if signal := <-signals; signal.Path == cosPath {
					got = append(got, signal.Name)
				}
			}
			if diff := cmp.Diff(tc.signals, got); diff != "" {
				t.Errorf("signals (-want +got):\n%s", diff)
			}
		})
	}
}
