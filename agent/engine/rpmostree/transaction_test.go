package rpmostree

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// download returns the body of DownloadProgress as it is received.
func download(fetched, requested any) []any {
	return []any{
		[]any{uint64(1), uint64(1)},
		[]any{uint32(0), uint32(0)},
		[]any{uint32(0), uint32(0), uint32(0)},
		[]any{uint32(0), uint32(0), uint32(0), uint64(0)},
		[]any{fetched, requested},
		[]any{uint64(1), uint64(1)},
	}
}

func TestDecodeProgress(t *testing.T) {
	cases := map[string]struct {
		member string
		body   []any
		want   progress
	}{
		"the end":                            {"Finished", []any{true, ""}, progress{finished: true, succeeded: true}},
		"an end that failed":                 {"Finished", []any{false, "no space"}, progress{finished: true, text: "no space"}},
		"a line of text":                     {"Message", []any{"Pulling"}, progress{text: "Pulling"}},
		"a task":                             {"TaskBegin", []any{"Staging"}, progress{text: "Staging"}},
		"a task's end reports nothing":       {"TaskEnd", []any{"done"}, progress{}},
		"a step":                             {"PercentProgress", []any{"Staging", uint32(7)}, progress{text: "Staging", percent: 7}},
		"more than 100% of a step":           {"PercentProgress", []any{"Staging", uint32(1 << 31)}, progress{text: "Staging", percent: 100}},
		"a step's end reports nothing":       {"ProgressEnd", nil, progress{}},
		"a download":                         {"DownloadProgress", download(uint32(2), uint32(3)), progress{text: "Downloading 2 of 3 objects", percent: 66}},
		"a download of 0 objects":            {"DownloadProgress", download(uint32(0), uint32(0)), progress{text: "Downloading 0 of 0 objects"}},
		"more objects than the download has": {"DownloadProgress", download(uint32(1<<32-1), uint32(1)), progress{text: "Downloading 4294967295 of 1 objects", percent: 100}},
		"a later signal reports nothing":     {"Unrelated", []any{"fine"}, progress{}},
		"text without end is cut":            {"Message", []any{strings.Repeat("x", 1<<20)}, progress{text: strings.Repeat("x", 253) + "…"}},
		"a character is not cut in two":      {"Message", []any{"x" + strings.Repeat("ä", 200)}, progress{text: "x" + strings.Repeat("ä", 126) + "…"}},
		"bytes are replaced":                 {"Message", []any{"a\xffb"}, progress{text: "a\uFFFDb"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := decodeProgress(transactionInterface+"."+tc.member, tc.body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(progress{})); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeProgress_RefusesMalformedBodies(t *testing.T) {
	cases := map[string]struct {
		member string
		body   []any
		want   string
	}{
		"an empty end":              {"Finished", nil, "Finished: types other than it has"},
		"a short end":               {"Finished", []any{true}, "Finished: types other than it has"},
		"a long end":                {"Finished", []any{true, "", ""}, "Finished: types other than it has"},
		"an end with other types":   {"Finished", []any{"true", ""}, "Finished: types other than it has"},
		"an end without a text":     {"Finished", []any{false, nil}, "Finished: types other than it has"},
		"a message of two texts":    {"Message", []any{"a", "b"}, "Message: types other than it has"},
		"a message of a list":       {"Message", []any{[]string{"a"}}, "Message: types other than it has"},
		"a negative percentage":     {"PercentProgress", []any{"a", int32(-1)}, "PercentProgress: types other than it has"},
		"a short download":          {"DownloadProgress", download(uint32(0), uint32(0))[:5], "DownloadProgress: 5 values instead of 6"},
		"a download of other types": {"DownloadProgress", download("2", "3"), "DownloadProgress: types other than it has"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := decodeProgress(transactionInterface+"."+tc.member, tc.body)
			if err == nil {
				t.Fatalf("decoded as %+v", got)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzDecodeProgress builds bodies of any length from values of any type.
func FuzzDecodeProgress(f *testing.F) {
	f.Add("Finished", "no space", uint32(0), []byte{0, 1})
	f.Add("PercentProgress", "Staging", uint32(7), []byte{1, 2})
	f.Add("Message", "\xff", uint32(7), []byte{1})
	f.Add("DownloadProgress", "", uint32(1<<32-1), []byte{3, 3, 3, 3, 4, 3})
	f.Add("Unrelated", strings.Repeat("ä", 300), uint32(0), []byte{1, 1, 1})
	f.Fuzz(func(t *testing.T, member, text string, number uint32, shape []byte) {
		values := []any{true, text, number, []any{}, []any{number, number / 2}, []any{number, text}, nil, false, int32(number)}
		body := make([]any, 0, len(shape))
		for _, b := range shape {
			body = append(body, values[int(b)%len(values)])
		}
		p, err := decodeProgress(transactionInterface+"."+member, body)
		if p.finished != (err == nil && member == "Finished") || p.succeeded && !p.finished {
			t.Errorf("%s%v is %+v, %v", member, body, p, err)
		}
		if len(p.text) > maxTextBytes || !utf8.ValidString(p.text) || p.percent > 100 {
			t.Errorf("decoded %+v", p)
		}
	})
}
