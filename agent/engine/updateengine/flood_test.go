package updateengine

import (
	"os"
	"runtime"
	"testing"

	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

// footprint holds the resources that a leak would use up.
type footprint struct {
	goroutines, files int
	heap              uint64
}

func footprintNow(t *testing.T) footprint {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("/proc is not available: ", err)
	}
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return footprint{runtime.NumGoroutine(), len(files), memory.HeapAlloc}
}

// Ten thousand broadcasts are handled without growth, and later ones are still received.
func TestEngine_AbsorbsAFloodOfBroadcasts(t *testing.T) {
	const flood = 10_000
	if testing.Short() {
		t.Skip("takes seconds")
	}
	h := newHarness(t)
	e := h.startHost()
	h.run()
	h.Expect(upToDate)
	busy := func(signals int) {
		for i := range signals {
			h.Must(e.Emit(hosttest.Status{Op: hosttest.OpDownloading, Version: "4001.0.0", Size: 201337, Progress: float64(i) / flood}))
		}
		h.Must(e.Emit(hosttest.NeedReboot("4001.0.0")))
		h.Expect(needed4001)
		h.Must(e.Emit(hosttest.Idle()))
		h.Expect(upToDate)
	}
	busy(flood / 100)
	before := footprintNow(t)
	busy(flood)
	var after footprint
	h.Until("everything that the flood took to be given back", func() bool { // some of it may still be ending
		after = footprintNow(t)
		return after.goroutines <= before.goroutines && after.files <= before.files && after.heap < before.heap+1<<20
	}, 0)
	t.Logf("before %+v, after %d signals %+v", before, flood, after)
}
