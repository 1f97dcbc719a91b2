package updatestatus

import (
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
)

func FuzzVersion(f *testing.F) {
	for _, text := range []string{"", "0.0.0.0", "4116.0.0+nightly-20241018-2100", "1. Reported in boot", "1.", strings.Repeat("9", 65), "1\n", "\xff", "1\u00a0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		version, err := Version(text)
		if err != nil && version != "" {
			t.Errorf("%q is %q, although %v", text, version, err)
		}
		readsAsItself(t, version)
	})
}

// readsAsItself checks that a version is short, of one printable word, and stays what it is.
func readsAsItself(t *testing.T, version string) {
	t.Helper()
	again, err := Version(version)
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	if err != nil || again != version || len(version) > 64 || strings.ContainsFunc(version, odd) {
		t.Errorf("version %q reads as %q, %v", version, again, err)
	}
}

// FuzzDecode builds bodies of any length out of values of any type.
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
		got, err := Decode(body)
		if err != nil {
			return
		}
		if !got.Operation.IsKnown() {
			t.Errorf("decoded %#v as %+v", body, got)
		}
		readsAsItself(t, got.Version)
	})
}
