package cosupdateengine

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine/updatestatus"
)

// Messages of update_engine.StatusResult, written down byte by byte.
const (
	// Last checked 1700000000, operation 6, version 17800.147.54, size 201337.
	staged = "\x08\x80\xe2\xcf\xaa\x06" + "\x18\x06" + "\x22\x0c17800.147.54" + "\x28\xf9\xa4\x0c"
	// Progress 0.5, operation 3, version 17900.1.2.
	halfway = "\x11\x00\x00\x00\x00\x00\x00\xe0\x3f" + "\x18\x03" + "\x22\x0917900.1.2"
)

func TestDecodeAdvanced(t *testing.T) {
	cases := map[string]struct {
		message string
		want    status
	}{
		"nothing at all is idle (behaviour 9)":           {"", idle},
		"a missing operation is idle (behaviour 9)":      {"\x08\x80\xe2\xcf\xaa\x06\x22\x070.0.0.0", idle},
		"operation 6 (behaviour 9)":                      {staged, need17800},
		"operation 6 with is_install (behaviour 9)":      {staged + "\x38\x01", installed},
		"an is_install that is false":                    {staged + "\x38\x00", need17800},
		"a download":                                     {halfway, downloading},
		"a negative operation":                           {"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", broken},
		"an error code":                                  {"\x18\x07\x22\x0917900.1.2\x50\x25", failed},
		"a deferred update":                              {"\x18\x0c\x22\x0917900.1.2", deferred},
		"a version of 0.0.0 is none (behaviour 8)":       {"\x18\x06\x22\x050.0.0", needUnnamed},
		"a version of 0.0.0.0 is none (behaviour 8)":     {"\x18\x06\x22\x070.0.0.0", needUnnamed},
		"the last of several counts":                     {"\x18\x03\x18\x06", needUnnamed},
		"fields in any order":                            {"\x22\x0c17800.147.54\x18\x06", need17800},
		"fields that nobody knows are passed over":       {"\x18\x06\x62\x02\x08\x01\x6a\x00\x80\x01\x01\x9b\x06\x9c\x06", needUnnamed},
		"a number longer than an enum is cut, as always": {"\x18\x86\x80\x80\x80\x10", needUnnamed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := decodeAdvanced([]any{[]byte(tc.message)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(status{})); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeAdvanced_RefusesMalformedBodies_Behaviour5(t *testing.T) {
	cases := map[string]struct {
		body []any
		want string
	}{
		"none":                       {nil, "0 values instead of 1"},
		"two values":                 {[]any{[]byte{}, []byte{}}, "2 values instead of 1"},
		"a nil value":                {[]any{nil}, "no array of bytes"},
		"a string":                   {[]any{staged}, "no array of bytes"},
		"numbers":                    {[]any{[]int32{24, 6}}, "no array of bytes"},
		"a message without end":      {[]any{make([]byte, 1<<20)}, "a message of 1048576 bytes"},
		"a tag that breaks off":      {[]any{[]byte("\x80")}, "a tag: unexpected EOF"},
		"a field of number 0":        {[]any{[]byte("\x00\x01")}, "a tag: invalid field number"},
		"no value":                   {[]any{[]byte("\x18")}, "field 3: unexpected EOF"},
		"a number without end":       {[]any{[]byte("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")}, "field 3: variable length integer overflow"},
		"a text that breaks off":     {[]any{[]byte("\x22\x0c17800")}, "field 4: unexpected EOF"},
		"a group that does not end":  {[]any{[]byte("\x9b\x06")}, "field 99: unexpected EOF"},
		"a text for the operation":   {[]any{[]byte("\x1a\x016")}, "field 3 has wire type 2 instead of 0"},
		"a number for the version":   {[]any{[]byte("\x20\x41")}, "field 4 has wire type 0 instead of 2"},
		"a number for the progress":  {[]any{[]byte("\x10\x01")}, "field 2 has wire type 0 instead of 1"},
		"an operation nobody knows":  {[]any{[]byte("\x18\x0d")}, "unknown operation 13"},
		"a version of several lines": {[]any{[]byte("\x18\x06\x22\x031\n2")}, `"1\n2" is no version`},
		"a version that is no text":  {[]any{[]byte("\x18\x06\x22\x01\xff")}, `"\xff" is no version`},
		"a version without end": {
			[]any{[]byte("\x18\x06\x22\xe8\x07" + strings.Repeat("9", 1000))}, `"` + strings.Repeat("9", 64) + `" is no version`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := decodeAdvanced(tc.body)
			if err == nil {
				t.Fatalf("decoded as %+v", got)
			}
			// protobuf varies a blank in its errors so that nobody relies on them.
			text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "proto: "), "\u00a0", " ")
			text = strings.ReplaceAll(text, "proto: ", "")
			if diff := cmp.Diff(tc.want, text); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// fit checks that what was decoded fits into a report.
func fit(t *testing.T, got status) {
	t.Helper()
	version, err := updatestatus.Version(got.version)
	if !got.operation.IsKnown() || err != nil || version != got.version {
		t.Errorf("decoded as %+v", got)
	}
	r := got.report()
	if r.Message == "" || len(r.Message) > 256 || !utf8.ValidString(r.Message) {
		t.Errorf("message of %d bytes: %q", len(r.Message), r.Message)
	}
}

func FuzzDecodeAdvanced(f *testing.F) {
	for _, message := range []string{"", staged, halfway, staged + "\x38\x01", "\x18\x0d", "\x22\x01\xff", "\x9b\x06\x9c\x06", "\x80"} {
		f.Add([]byte(message))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		if got, err := decodeAdvanced([]any{message}); err == nil {
			fit(t, got)
		}
	})
}
