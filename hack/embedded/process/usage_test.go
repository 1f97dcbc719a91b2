package process

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseMemory(t *testing.T) {
	status := "Name:\tmanager\nVmPeak:\t 1300000 kB\nVmHWM:\t   70000 kB\nVmRSS:\t   60000 kB\nRssAnon:\t   20000 kB\nThreads:\t9\n"
	want := Memory{Resident: 60000 << 10, Anonymous: 20000 << 10, Peak: 70000 << 10}
	if diff := cmp.Diff(want, parseMemory([]byte(status))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseCPU(t *testing.T) {
	const before, after = "4711 (", " S 1 4711 4711 0 -1 4194304 5113 0 0 0 150 25 7 7 20 0 9 0 100 1300000 15000"
	cases := map[string]struct {
		stat string
		want time.Duration
		err  string
	}{
		"a program":                        {before + "manager)" + after, 1750 * time.Millisecond, ""},
		"a name that looks like its end":   {before + "a) R 1 (b" + ")" + after, 1750 * time.Millisecond, ""},
		"no fields":                        {before + "manager) S 1", 0, "4 fields are too few"},
		"nothing":                          {"", 0, "2 fields are too few"},
		"words where there should be none": {before + "m) S 1 1 1 0 -1 0 0 0 0 0 x 25 0", 0, `reading a number of ticks: strconv.ParseInt: parsing "x": invalid syntax`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseCPU([]byte(tc.stat))
			message := ""
			if err != nil {
				message = err.Error()
			}
			if got != tc.want || message != tc.err {
				t.Errorf("got %s, %q; want %s, %q", got, message, tc.want, tc.err)
			}
		})
	}
}
