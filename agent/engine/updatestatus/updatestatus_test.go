package updatestatus

import (
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
)

func TestDecode(t *testing.T) {
	const need, nightly = "UPDATE_STATUS_UPDATED_NEED_REBOOT", "4116.0.0+nightly-20241018-2100"
	cases := map[string]struct {
		body []any
		want Status
	}{
		"locksmithctl send-need-reboot": {[]any{int64(0), 0.0, need, "", int64(0)}, Status{Operation: UpdatedNeedReboot}},
		"an engine":                     {[]any{int64(1700000000), 0.5, need, nightly, int64(201337)}, Status{UpdatedNeedReboot, nightly}},
		"a restarted engine":            {[]any{int64(0), 0.0, need, "0.0.0", int64(0)}, Status{Operation: UpdatedNeedReboot}},
		"an idle engine":                {[]any{int64(0), 0.0, "UPDATE_STATUS_IDLE", "0.0.0", int64(0)}, Status{}},
		"a download":                    {[]any{int64(1), 0.5, "UPDATE_STATUS_DOWNLOADING", "4001.0.0", int64(2)}, Status{3, "4001.0.0"}},
		"an error":                      {[]any{int64(0), 0.0, "UPDATE_STATUS_ERROR", "", int64(0)}, Status{Operation: Error}},
		"deferred":                      {[]any{int64(0), 0.0, "UPDATE_STATUS_UPDATED_BUT_DEFERRED", "1.2", int64(0)}, Status{UpdatedButDeferred, "1.2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(tc.body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecode_RefusesMalformedBodies_Behaviour5(t *testing.T) {
	cases := map[string]struct {
		body []any
		want string
	}{
		"nothing":                     {nil, "0 values instead of 5"},
		"four values":                 {[]any{int64(1), 0.5, "x", "1"}, "4 values instead of 5"},
		"six values":                  {[]any{int64(1), 0.5, "x", "1", int64(2), int64(2)}, "6 values instead of 5"},
		"a nil value":                 {[]any{nil, 0.5, "x", "1", int64(2)}, "types other than xdssx"},
		"a number for the operation":  {[]any{int64(1), 0.5, int64(6), "1", int64(2)}, "types other than xdssx"},
		"another integer type":        {[]any{int32(1), 0.5, "x", "1", int64(2)}, "types other than xdssx"},
		"a variant":                   {[]any{int64(1), 0.5, dbus.MakeVariant("x"), "1", int64(2)}, "types other than xdssx"},
		"a structure":                 {[]any{int64(1), 0.5, []any{"x"}, "1", int64(2)}, "types other than xdssx"},
		"a number for the version":    {[]any{int64(1), 0.5, "x", int64(65), int64(2)}, "types other than xdssx"}, // dbus.Store would read "A"
		"a version of two lines":      {[]any{int64(1), 0.5, "x", "1\n2", int64(2)}, `"1\n2" is not a version`},
		"no operation":                {[]any{int64(1), 0.5, "", "1", int64(2)}, `unknown operation ""`},
		"a prefix, alone":             {[]any{int64(1), 0.5, "UPDATE_STATUS_", "1", int64(2)}, `unknown operation "UPDATE_STATUS_"`},
		"without prefix":              {[]any{int64(1), 0.5, "UPDATED_NEED_REBOOT", "1", int64(2)}, `unknown operation "UPDATED_NEED_REBOOT"`},
		"a later operation":           {[]any{int64(1), 0.5, "UPDATE_STATUS_SOMETHING", "1", int64(2)}, `unknown operation "UPDATE_STATUS_SOMETHING"`},
		"CoreOS's fallback operation": {[]any{int64(1), 0.5, "unknown status", "1", int64(2)}, `unknown operation "unknown status"`},
		"an operation without end": {
			[]any{int64(1), 0.5, strings.Repeat("x", 1<<20), "1", int64(2)}, `unknown operation "` + strings.Repeat("x", 64) + `"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(tc.body)
			if err == nil {
				t.Fatalf("decoded as %+v", got)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	cases := map[string]struct {
		text, want string
		refused    bool
	}{
		"Flatcar's":                          {"4001.0.0", "4001.0.0", false},
		"COS'":                               {"17800.147.54", "17800.147.54", false},
		"none":                               {"", "", false},
		"no version, as Flatcar writes it":   {"0.0.0", "", false},
		"no version, as COS writes it":       {"0.0.0.0", "", false},
		"a version that only begins like it": {"0.0.0.1", "0.0.0.1", false},
		"the longest":                        {strings.Repeat("9", 64), strings.Repeat("9", 64), false},
		"too long":                           {strings.Repeat("9", 65), "", true},
		"a nightly version":                  {"4116.0.0+nightly-20241018-2100", "4116.0.0+nightly-20241018-2100", false},
		"a sentence":                         {"1. Reboot at once", "", true},
		"a version that ends with a period":  {"1.", "", true},
		"dots alone":                         {"...", "", true},
		"a control character":                {"1\x002", "", true},
		"bytes that are not UTF-8":           {"\xff", "", true},
		"a character that is invisible":      {"1\u200b2", "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Version(tc.text)
			if got != tc.want || err != nil != tc.refused {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
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

// readsAsItself checks that a version is short, printable, without spaces, and does not change when
// it is read again.
func readsAsItself(t *testing.T, version string) {
	t.Helper()
	again, err := Version(version)
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	if err != nil || again != version || len(version) > 64 || strings.ContainsFunc(version, odd) {
		t.Errorf("version %q reads as %q, %v", version, again, err)
	}
}

// FuzzDecode builds bodies of any length from values of any type.
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
