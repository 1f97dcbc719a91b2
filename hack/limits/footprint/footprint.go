// Package footprint measures leaks, for tests that run the measured code in their own process.
package footprint

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// sample is the sampling rate of the heap profile in bytes. It is small enough to be precise to a
// tenth of a MiB.
const sample = 4096

// Footprint describes the resources of a process.
type Footprint struct {
	Goroutines int
	// Files is the number of open file descriptors.
	Files int
	// Heap is the size of live objects in the heap after two collections, in bytes, without Events.
	Heap int64
	// Events is the memory in which client-go keeps recorded events, in bytes, according to the
	// heap profile. It keeps each for six to twelve minutes, to combine repeated ones into series.
	Events int64
}

// Precise makes the heap profile, and with it Events, precise. Call it before everything else.
func Precise() { runtime.MemProfileRate = sample }

// Now returns the footprint of this process. It fails without /proc.
func Now() (Footprint, error) {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return Footprint{}, fmt.Errorf("counting open files: %w", err)
	}
	runtime.GC()
	runtime.GC() // the profile shows the state before the last collection
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	events := inUse("k8s.io/client-go/tools/events.")
	return Footprint{
		Goroutines: runtime.NumGoroutine(), Files: len(files), Heap: int64(memory.HeapAlloc) - events, Events: events,
	}, nil
}

// inUse returns the size of live objects allocated by functions of a package.
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

// allOf estimates the bytes that a sampled record stands for: larger allocations are more likely to
// be sampled.
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

// mebi formats an amount of memory.
func mebi(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// growth describes what has grown more than allowed, or returns "". The heap may grow by the given
// number of bytes, and the rest by a few.
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

// few is the normal variation of goroutines and files.
const few = 3

// allowedHeap is the normal variation of the heap, in bytes.
const allowedHeap = 1 << 20

// spec is a [testing.T] or Ginkgo's equivalent.
type spec interface {
	Helper()
	Name() string
	Skip(why ...any)
	Log(args ...any)
	Fatal(args ...any)
}

// Cycles runs a function for a number of cycles, which REBOOTS can change, after a tenth of them as
// a warm-up. The second half must not leave anything behind.
func Cycles(t spec, program string, few int, cycle func()) {
	t.Helper()
	cycles, gone := testenv.Number("REBOOTS", few), 0
	through := func(n int) Footprint {
		for range n {
			cycle()
		}
		gone += n
		return now(t)
	}
	row := func(f Footprint) {
		t.Helper()
		AddRow(t, "cycles", program, gone, f.Goroutines, f.Files, mebi(f.Heap), mebi(f.Events))
	}
	row(through(cycles / 10))
	half := through(cycles / 2)
	row(half)
	through(cycles / 2)
	row(stays(t, half))
}

// Flood calls one a hundred times, or as often as FLOOD says, after a tenth of that as a warm-up.
// It must not leave anything behind. rest waits until the program has handled everything, and
// returns its number of decisions. asked returns its number of requests to the API server. Flood
// returns the decisions and requests that it caused.
func Flood(t spec, program, description string, one func(i int), rest, asked func() int) (decisions, requests int) {
	t.Helper()
	size := testenv.Number("FLOOD", 100)
	for i := range size / 10 {
		one(i)
	}
	decided, before, sent, begin := rest(), now(t), asked(), time.Now()
	for i := range size {
		one(size + i)
	}
	took := time.Since(begin)
	decisions = rest() - decided
	after := stays(t, before)
	requests = asked() - sent
	short := func(f Footprint) string { return fmt.Sprintf("%d, %d, %s", f.Goroutines, f.Files, mebi(f.Heap)) }
	AddRow(t, "floods", program, description, size, fmt.Sprintf("%.1f s", took.Seconds()), decisions, requests, short(before), short(after))
	return decisions, requests
}

// now returns the footprint of this process. It skips the test if that cannot be measured.
func now(t spec) Footprint {
	t.Helper()
	f, err := Now()
	if err != nil {
		testenv.NotShown(t, err.Error())
	}
	return f
}

// stays waits until the footprint has not grown more than allowed, and returns it.
func stays(t spec, before Footprint) (after Footprint) {
	t.Helper()
	grown := ""
	err := wait.PollUntilContextTimeout(context.Background(), 200*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		after = now(t)
		grown = after.growth(before, allowedHeap)
		return grown == "", nil
	})
	if err != nil {
		t.Fatal("left behind: " + grown)
	}
	return after
}

// AddRow logs a row. With `make limits` it also adds it to a table of docs/limits.md.
func AddRow(t spec, table string, cells ...any) {
	t.Helper()
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = fmt.Sprint(cell)
	}
	row := document.Row(texts...)
	t.Log(row)
	if page := os.Getenv("FIGURES"); page != "" {
		if err := document.Edit(page, table, func(rows string) string { return rows + "\n" + row }); err != nil {
			t.Fatal(err)
		}
	}
}

// Log is the log of a suite. It drops everything while Quiet, because what a test keeps would count
// as a leak.
type Log struct {
	To    io.Writer
	Quiet atomic.Bool
}

// Write implements io.Writer.
func (l *Log) Write(line []byte) (int, error) {
	if l.Quiet.Load() {
		return len(line), nil
	}
	return l.To.Write(line)
}
