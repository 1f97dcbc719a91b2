package updatestatus

import (
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
)

// FuzzDecode builds bodies of any length out of values of any type.
func FuzzDecode(f *testing.F) {
	f.Add("UPDATE_STATUS_UPDATED_NEED_REBOOT", "4081.2.0", []byte{0, 1, 2, 3, 0})
	f.Add("", "0.0.0", []byte{0, 1, 2, 3, 0, 0})
	f.Add("\xff", "a b", []byte{0, 1, 3, 2, 0})
	f.Fuzz(func(t *testing.T, operation, version string, shape []byte) {
		values := []any{int64(1), 0.5, operation, version, int32(1), []any{operation}, dbus.MakeVariant(version), nil, true}
		body := make([]any, 0, len(shape))
		for _, b := range shape {
			body = append(body, values[int(b)%len(values)])
		}
		got, err := Decode(body)
		switch {
		case err != nil && got != Status{}:
			t.Errorf("%#v is %+v, although %v", body, got, err)
		case err == nil && len(body) != 5:
			t.Errorf("%d values are %+v", len(body), got)
		}
		readsAsItself(t, got.Version)
	})
}

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
