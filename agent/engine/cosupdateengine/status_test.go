package cosupdateengine

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/updatestatus"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Possible statuses.
var (
	idle        = status{}
	needUnnamed = status{operation: updatestatus.UpdatedNeedReboot}
	need17800   = status{operation: updatestatus.UpdatedNeedReboot, version: "17800.147.54"}
	need17900   = status{operation: updatestatus.UpdatedNeedReboot, version: "17900.1.2"}
	installed   = status{operation: updatestatus.UpdatedNeedReboot, version: "17800.147.54", install: true}
	checking    = status{operation: 1}
	downloading = status{operation: 3, version: "17900.1.2"}
	finalizing  = status{operation: 5, version: "17900.1.2"}
	failed      = status{operation: updatestatus.ReportingErrorEvent, version: "17900.1.2", attemptError: 37}
	broken      = status{operation: updatestatus.Error}
	deferred    = status{operation: updatestatus.UpdatedButDeferred, version: "17900.1.2"}
)

func notNeeded(message string) engine.Report {
	return engine.Report{
		Engine: "cos-update-engine", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: message,
	}
}

func needed(version, message string) engine.Report {
	return engine.Report{
		Engine: "cos-update-engine", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: version,
		Message: message,
	}
}

// Expected reports.
var (
	upToDate    = notNeeded("COS update_engine has no update that waits for a reboot.")
	absent      = engine.Unreachable(Name, "COS update_engine is not on the system bus.")
	anyNeed     = needed("", "COS update_engine has installed an update; it runs after a reboot.")
	needed17800 = needed("17800.147.54", "COS update_engine has installed version 17800.147.54; it runs after a reboot.")
	needed17900 = needed("17900.1.2", "COS update_engine has installed version 17900.1.2; it runs after a reboot.")
)

func TestNeed(t *testing.T) {
	cases := map[string]struct {
		before   engine.Report
		received []status
		want     engine.Report
	}{
		"an idle engine needs nothing": {received: []status{idle}, want: upToDate},
		"operation 6 is a need (behaviour 9)": {
			received: []status{need17800}, want: needed17800,
		},
		"operation 6 of an install needs no reboot (behaviour 9)": {
			received: []status{installed}, want: upToDate,
		},
		"a download stages no version yet": {received: []status{downloading}, want: upToDate},
		"a need without a version":         {received: []status{needUnnamed}, want: anyNeed},
		"a restarted engine keeps the version it has forgotten (behaviour 8)": {
			received: []status{need17800, needUnnamed}, want: needed17800,
		},
		"a newer version overwrites an older one": {
			received: []status{need17800, need17900}, want: needed17900,
		},
		"the version of an install or a download is not remembered": {
			received: []status{installed, downloading, needUnnamed}, want: anyNeed,
		},
		"a version does not outlive its need": {
			received: []status{need17800, idle, needUnnamed}, want: anyNeed,
		},
		"a need ends when the engine leaves it (behaviour 3)": {
			received: []status{need17800, idle}, want: upToDate,
		},
		"a check for a newer update does not end the need": {
			received: []status{need17800, checking}, want: needed17800,
		},
		"a check that finds no update leaves the staged one": {
			received: []status{need17800, checking, needUnnamed}, want: needed17800,
		},
		"a check after which the engine is idle ends the need": {
			received: []status{need17800, checking, idle}, want: upToDate,
		},
		"a failed check leaves the staged update": {
			received: []status{need17800, checking, failed}, want: needed17800,
		},
		"a failed check that is reported as an error leaves the staged update": {
			received: []status{need17800, checking, failed, needUnnamed}, want: needed17800,
		},
		"a failed check after which the engine is idle ends the need": {
			received: []status{need17800, checking, failed, idle}, want: upToDate,
		},
		"a failed download has overwritten the staged update": {
			received: []status{need17800, checking, downloading, failed},
			want: notNeeded("COS update_engine reports that its last attempt failed (REPORTING_ERROR_EVENT, error code 37); " +
				"no update waits for a reboot."),
		},
		"a check by an idle engine needs no reboot": {received: []status{idle, checking}, want: upToDate},
		"a download overwrites the staged update": {
			received: []status{need17800, checking, downloading}, want: upToDate,
		},
		"an update that is being finalized overwrites the staged update": {
			received: []status{need17800, finalizing}, want: upToDate,
		},
		"a newer update takes the place of an older one": {
			received: []status{need17800, checking, downloading, finalizing, need17900}, want: needed17900,
		},
		"a restarted agent keeps a need while the engine checks": {
			before: needed17800, received: []status{checking}, want: needed17800,
		},
		"an install in progress needs no reboot": {
			// update_engine starts an install only while it is idle, so nothing can be staged any
			// more.
			received: []status{need17800, installed}, want: upToDate,
		},
		"a failed attempt is reported as failed": {
			received: []status{failed},
			want: notNeeded("COS update_engine reports that its last attempt failed (REPORTING_ERROR_EVENT, error code 37); " +
				"no update waits for a reboot."),
		},
		"an error is reported as an error": {
			received: []status{broken},
			want:     notNeeded("COS update_engine reports an error (ERROR); no update waits for a reboot."),
		},
		"a deferred update needs no reboot and is reported": {
			received: []status{deferred},
			want:     notNeeded("COS update_engine has deferred version 17900.1.2 (UPDATED_BUT_DEFERRED); a reboot would not apply it."),
		},
		"a restarted agent keeps a need until it has queried the engine": {before: needed17800, want: needed17800},
		"a restarted agent keeps the version the engine has forgotten": {
			before: needed17800, received: []status{needUnnamed}, want: needed17800,
		},
		"a restarted agent drops a need that was reset during the restart": {
			before: needed17800, received: []status{idle}, want: upToDate,
		},
		"a restarted agent takes nothing from a report without a need": {before: upToDate, want: upToDate},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := resumed(tc.before)
			for _, received := range tc.received {
				s = s.next(received)
			}
			if diff := cmp.Diff(tc.want, s.report()); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNeed_IsTheLastReportExceptChecksAndTheirFailures(t *testing.T) {
	all := []status{idle, checking, needUnnamed, need17800, need17900, installed, downloading, finalizing, failed, broken, deferred}
	rapid.Check(t, func(t *rapid.T) {
		s := resumed(engine.Report{})
		want := false
		for range rapid.IntRange(0, 20).Draw(t, "inputs") {
			received := rapid.SampledFrom(all).Draw(t, "status")
			want = received.needsReboot() || want && (received == checking || received == failed)
			s = s.next(received)
			if s.next(received) != s {
				t.Fatalf("receiving %+v twice is more than receiving it once", received)
			}
			if got := s.report().State == engine.Needed; got != want {
				t.Fatalf("after %+v: needed is %v, want %v", received, got, want)
			}
		}
	})
}

// Encoded messages of update_engine.StatusResult.
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
		"nothing at all is idle (behaviour 9)":                {"", idle},
		"a missing operation is idle (behaviour 9)":           {"\x08\x80\xe2\xcf\xaa\x06\x22\x070.0.0.0", idle},
		"operation 6 (behaviour 9)":                           {staged, need17800},
		"operation 6 with is_install (behaviour 9)":           {staged + "\x38\x01", installed},
		"an is_install that is false":                         {staged + "\x38\x00", need17800},
		"a download":                                          {halfway, downloading},
		"a negative operation":                                {"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", broken},
		"an error code":                                       {"\x18\x07\x22\x0917900.1.2\x50\x25", failed},
		"a deferred update":                                   {"\x18\x0c\x22\x0917900.1.2", deferred},
		"a version of 0.0.0 names none (behaviour 8)":         {"\x18\x06\x22\x050.0.0", needUnnamed},
		"a version of 0.0.0.0 names none (behaviour 8)":       {"\x18\x06\x22\x070.0.0.0", needUnnamed},
		"the last of several fields counts":                   {"\x18\x03\x18\x06", needUnnamed},
		"fields in any order":                                 {"\x22\x0c17800.147.54\x18\x06", need17800},
		"unknown fields are skipped":                          {"\x18\x06\x62\x02\x08\x01\x6a\x00\x80\x01\x01\x9b\x06\x9c\x06", needUnnamed},
		"a number longer than an enum is truncated, as usual": {"\x18\x86\x80\x80\x80\x10", needUnnamed},
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
		"a nil value":                {[]any{nil}, "the value is not an array of bytes"},
		"a string":                   {[]any{staged}, "the value is not an array of bytes"},
		"numbers":                    {[]any{[]int32{24, 6}}, "the value is not an array of bytes"},
		"a message without end":      {[]any{make([]byte, 1<<20)}, "a message of 1048576 bytes"},
		"a tag that is cut off":      {[]any{[]byte("\x80")}, "a tag: unexpected EOF"},
		"a field of number 0":        {[]any{[]byte("\x00\x01")}, "a tag: invalid field number"},
		"no value":                   {[]any{[]byte("\x18")}, "field 3: unexpected EOF"},
		"a number without end":       {[]any{[]byte("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")}, "field 3: variable length integer overflow"},
		"a text that is cut off":     {[]any{[]byte("\x22\x0c17800")}, "field 4: unexpected EOF"},
		"a group that does not end":  {[]any{[]byte("\x9b\x06")}, "field 99: unexpected EOF"},
		"text as the operation":      {[]any{[]byte("\x1a\x016")}, "field 3 has wire type 2 instead of 0"},
		"a number as the version":    {[]any{[]byte("\x20\x41")}, "field 4 has wire type 0 instead of 2"},
		"a number as the progress":   {[]any{[]byte("\x10\x01")}, "field 2 has wire type 0 instead of 1"},
		"an unknown operation":       {[]any{[]byte("\x18\x0d")}, "unknown operation 13"},
		"a version of several lines": {[]any{[]byte("\x18\x06\x22\x031\n2")}, `"1\n2" is not a version`},
		"a version that is not text": {[]any{[]byte("\x18\x06\x22\x01\xff")}, `"\xff" is not a version`},
		"a version without end": {
			[]any{[]byte("\x18\x06\x22\xe8\x07" + strings.Repeat("9", 1000))}, `"` + strings.Repeat("9", 64) + `" is not a version`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := decodeAdvanced(tc.body)
			if err == nil {
				t.Fatalf("decoded as %+v", got)
			}
			// protobuf varies the blanks in its errors so that nobody relies on them.
			text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "proto: "), "\u00a0", " ")
			text = strings.ReplaceAll(text, "proto: ", "")
			if diff := cmp.Diff(tc.want, text); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// fit checks that a decoded status fits into a report.
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
