package updateengine

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine/updatestatus"
)

func TestDecode(t *testing.T) {
	const op = "UPDATE_STATUS_UPDATED_NEED_REBOOT"
	cases := map[string]struct {
		body []any
		want status
	}{
		"the body of locksmithctl send-need-reboot": {[]any{int64(0), float64(0), op, "", int64(0)}, needUnnamed},
		"the body of an engine":                     {[]any{int64(1700000000), 0.5, op, "4001.0.0", int64(201337)}, need4001},
		"the body of a restarted engine":            {[]any{int64(0), float64(0), op, "0.0.0", int64(0)}, needUnnamed},
		"a nightly build": {
			[]any{int64(0), 1.0, op, "4116.0.0+nightly-20241018-2100", int64(1)},
			status{operation: opUpdatedNeedReboot, version: "4116.0.0+nightly-20241018-2100"},
		},
		"an idle engine": {[]any{int64(0), float64(0), "UPDATE_STATUS_IDLE", "0.0.0", int64(0)}, idle},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := decode(tc.body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(status{})); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecode_RefusesMalformedBodies(t *testing.T) {
	const op = "UPDATE_STATUS_UPDATED_NEED_REBOOT"
	cases := map[string]struct {
		body []any
		want string
	}{
		"an operation nobody knows": {
			[]any{int64(0), float64(0), "unknown status", "", int64(0)}, `unknown operation "unknown status"`,
		},
		"an operation without end": {
			[]any{int64(0), float64(0), strings.Repeat("x", 1<<20), "", int64(0)},
			`unknown operation "` + strings.Repeat("x", 64) + `"`,
		},
		"a version with a line break": {[]any{int64(0), float64(0), op, "1\n2", int64(0)}, `"1\n2" is no version`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := decode(tc.body)
			if err == nil {
				t.Fatalf("decoded as %+v", got)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzDecode builds bodies of any length out of values of any type, and checks that what is decoded fits into a report.
func FuzzDecode(f *testing.F) {
	f.Add(int64(0), 0.0, "UPDATE_STATUS_UPDATED_NEED_REBOOT", "", []byte{0, 1, 2, 3, 0})
	f.Add(int64(1), 0.5, "UPDATE_STATUS_UPDATED_NEED_REBOOT", "4001.0.0", []byte{0, 1, 2, 3, 0})
	f.Add(int64(6), 1.0, "UPDATE_STATUS_IDLE", "\xff\x00", []byte{0, 1, 4, 5, 6})
	f.Add(int64(65), 0.0, "", "0.0.0", []byte{})
	f.Add(int64(65), 0.0, "unknown status", "0.0.0", []byte{0, 1, 2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, number int64, fraction float64, op, version string, shape []byte) {
		values := []any{number, fraction, op, version, []any{op}, dbus.MakeVariant(version), nil, int32(number), []byte(op), true}
		body := make([]any, 0, len(shape))
		for _, b := range shape {
			body = append(body, values[int(b)%len(values)])
		}
		got, err := decode(body)
		if err != nil {
			return
		}
		fit, err := updatestatus.Version(got.version)
		if !got.operation.isKnown() || err != nil || fit != got.version {
			t.Errorf("decoded %#v as %+v", body, got)
		}
		for _, in := range []input{{status: got}, {status: got, fromEngine: true}} {
			if m := next(state{}, in).report().Message; m == "" || len(m) > 256 || !utf8.ValidString(m) {
				t.Errorf("message of %d bytes: %q", len(m), m)
			}
		}
	})
}
