package main

import (
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	testclock "k8s.io/utils/clock/testing"
)

func TestCleanMappings(t *testing.T) {
	const text = "00400000-0180d000 r-xp 00000000 fe:00 123 /agent\nRss: 100 kB\n"
	for name, tc := range map[string]struct {
		smaps string
		want  []mapping
	}{
		"text that nothing was written to":      {text + "Anonymous:  0 kB\n", []mapping{{0x400000, 0x180d000}}},
		"relocated: releasing it would lose it": {text + "Anonymous: 64 kB\n", nil},
		"another file":                          {strings.Replace(text, "/agent", "/lib/libc.so", 1) + "Anonymous: 0 kB\n", nil},
		"writable data":                         {strings.Replace(text, "r-xp", "rw-p", 1) + "Anonymous: 0 kB\n", nil},
		"a heap has no path":                    {"c000000000-c000400000 rw-p 00000000 00:00 0\nAnonymous: 0 kB\n", nil},
		"addresses that are none":               {strings.Replace(text, "00400000", "xyz", 1) + "Anonymous: 0 kB\n", nil},
		"nothing":                               {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := cleanMappings(strings.NewReader(tc.smaps), "/agent")
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(mapping{})); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// A program that has given its own text back goes on.
func TestReleaseProgram(t *testing.T) {
	if err := releaseProgram(); err != nil {
		t.Fatal(err)
	}
}

func TestOnceCalm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer, changed, released := testclock.NewFakeClock(time.Now()), make(chan struct{}, 1), 0
		go onceCalm(t.Context(), changed, timer, func() { released++ })
		check := func(want int, when string) {
			t.Helper()
			synctest.Wait()
			if released != want {
				t.Errorf("%s: %d releases, want %d", when, released, want)
			}
		}
		pass := func(d time.Duration) {
			synctest.Wait()
			timer.Step(d)
		}
		pass(time.Hour)
		check(0, "nothing has changed")
		changed <- struct{}{}
		check(0, "a change, just now")
		pass(calm - 1)
		changed <- struct{}{}
		pass(1)
		check(1, "calm, though something changed in between")
		pass(calm)
		check(2, "calm after that change")
		pass(settled)
		check(3, "settled")
		pass(time.Hour)
		check(3, "nothing more")
		changed <- struct{}{}
		pass(calm)
		pass(settled)
		check(5, "the next change")
	})
}

func TestCollectEarly_LeavesTheUserHisWord(t *testing.T) {
	before := debug.SetGCPercent(73)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	collectEarly(func(string) string { return "73" })
	if got := debug.SetGCPercent(73); got != 73 {
		t.Errorf("GOGC is set, and still it is %d", got)
	}
	collectEarly(func(string) string { return "" })
	if got := debug.SetGCPercent(73); got != garbage {
		t.Errorf("it is %d", got)
	}
}
