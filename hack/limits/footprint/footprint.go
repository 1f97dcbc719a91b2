// Package footprint measures what a leak makes larger, for tests that run what they measure in their own process.
package footprint

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
)

// sample is how many bytes lie between two allocations that the heap profile takes in: small enough for a figure to a tenth of
// a MiB.
const sample = 4096

// Footprint is what a process has.
type Footprint struct {
	Goroutines int
	// Files are open file descriptors.
	Files int
	// Heap is what lives in the heap after two collections, in bytes, but for Events.
	Heap int64
	// Events is what client-go remembers of the events that were recorded, in bytes, by the heap profile: each for six to twelve
	// minutes, so that those that repeat become a series.
	Events int64
}

// Precise makes the heap profile, and with it Events, precise. It is called once, before everything else.
func Precise() { runtime.MemProfileRate = sample }

// Now is the footprint of this process. It fails where there is no /proc.
func Now() (Footprint, error) {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return Footprint{}, fmt.Errorf("counting open files: %w", err)
	}
	runtime.GC()
	runtime.GC() // the profile is as of the collection before
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	events := inUse("k8s.io/client-go/tools/events.")
	return Footprint{
		Goroutines: runtime.NumGoroutine(), Files: len(files), Heap: int64(memory.HeapAlloc) - events, Events: events,
	}, nil
}

// inUse is what lives of all that was allocated below functions of a package.
func inUse(prefix string) int64 {
	records := make([]runtime.MemProfileRecord, 1000)
	for {
		n, ok := runtime.MemProfile(records, false)
		if ok {
			records = records[:n]
			break
		}
		records = make([]runtime.MemProfileRecord, n+100)
	}
	var bytes float64
	for i := range records {
		if passes(records[i].Stack(), prefix) {
			bytes += allOf(&records[i])
		}
	}
	return int64(bytes)
}

// allOf is what a record represents, in bytes: an allocation is sampled the more likely the larger it is.
func allOf(r *runtime.MemProfileRecord) float64 {
	if r.InUseObjects() == 0 {
		return 0
	}
	size := float64(r.InUseBytes()) / float64(r.InUseObjects())
	return float64(r.InUseBytes()) / (1 - math.Exp(-size/sample))
}

func passes(stack []uintptr, prefix string) bool {
	frames := runtime.CallersFrames(stack)
	for {
		frame, more := frames.Next()
		if strings.HasPrefix(frame.Function, prefix) {
			return true
		}
		if !more {
			return false
		}
	}
}

// mebi is an amount of memory for people.
func mebi(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// growth is what is more than before, nothing where there is less, beyond what is allowed; empty: it is flat. Heap is allowed
// to grow by so many bytes, and the rest by a few that come and go.
func (f Footprint) growth(before Footprint, heap int64) string {
	var grown []string
	if f.Goroutines > before.Goroutines+few {
		grown = append(grown, fmt.Sprintf("%d goroutines instead of %d", f.Goroutines, before.Goroutines))
	}
	if f.Files > before.Files+few {
		grown = append(grown, fmt.Sprintf("%d open files instead of %d", f.Files, before.Files))
	}
	if f.Heap > before.Heap+heap {
		grown = append(grown, fmt.Sprintf("a heap of %d bytes instead of %d", f.Heap, before.Heap))
	}
	return strings.Join(grown, ", ")
}

// few is by how much goroutines and files differ from one moment to the next.
const few = 3
