package main

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestCleanAreas(t *testing.T) {
	const smaps = `00400000-01425000 r-xp 00000000 fe:00 10618322                           /agent
Size:              16532 kB
Anonymous:             0 kB
01425000-024e2000 r--p 01025000 fe:00 10618322                           /agent
Anonymous:             0 kB
024e2000-024f0000 r--p 020e2000 fe:00 10618322                           /agent
Anonymous:             4 kB
024f0000-0256c000 rw-p 020e2000 fe:00 10618322                           /agent
Anonymous:             0 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:00 7                          /lib/agent
Anonymous:             0 kB
7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
`
	want := []area{{0x400000, 0x1425000}, {0x1425000, 0x24e2000}}
	if diff := cmp.Diff(want, cleanAreas(smaps, "/agent"), cmp.AllowUnexported(area{})); diff != "" {
		t.Errorf("cleanAreas (-want +got):\n%s", diff)
	}
}

func TestShrinkOnceSettled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc/self/smaps")
	}
	clock := clocktesting.NewFakeClock(time.Now())
	ended := make(chan error)
	go func() { ended <- shrinkOnceSettled(clock)(t.Context()) }()
	for !clock.HasWaiters() {
		runtime.Gosched()
	}
	before := mappedFile(t)
	clock.Step(settled)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if after := mappedFile(t); after > before/2 {
		t.Errorf("%d kB of files were mapped, and still %d kB are", before, after)
	}
}

// mappedFile is how many kB of files are mapped.
func mappedFile(t *testing.T) (kB int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, "RssFile:"); found {
			for _, digit := range strings.TrimSuffix(strings.TrimSpace(value), " kB") {
				kB = 10*kB + int(digit-'0')
			}
		}
	}
	return kB
}
