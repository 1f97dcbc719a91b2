// Package footprint measures what a leak makes larger, for tests that run what they measure in their own process.
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

// sample is how many bytes lie between two allocations in the heap profile. It is small enough for a figure to a tenth of a MiB.
const sample = 4096

// Footprint is what a process has.
type Footprint struct {
	Goroutines int
	// Files are open file descriptors.
	Files int
	// Heap is what lives in the heap after two collections, in bytes, but for Events.
	Heap int64
	// Events is what client-go remembers of the events that were recorded, in bytes, by the heap profile. It remembers each for six to
	// twelve minutes, so that those that repeat become a series.
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

// allowedHeap is by how much the heap may differ between two moments, in bytes.
const allowedHeap = 1 << 20

// spec is a [testing.T], or what Ginkgo has instead.
type spec interface {
	Helper()
	Name() string
	Skip(why ...any)
	Log(args ...any)
	Fatal(args ...any)
}

// Cycles makes a program go through cycles, a tenth first: few of them, or as many as REBOOTS sets. The second half of them has to leave
// nothing behind.
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

// Flood does something again and again, after a tenth of that: a hundred times, or as many as FLOOD sets. It has to leave nothing
// behind. Rest waits until the program has decided about all of it, and returns how often it has decided. asked is how often it has
// asked the API server. It returns how often it has decided and asked because of the flood.
func Flood(t spec, program, what string, one func(i int), rest, asked func() int) (decisions, requests int) {
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
	AddRow(t, "floods", program, what, size, fmt.Sprintf("%.1f s", took.Seconds()), decisions, requests, short(before), short(after))
	return decisions, requests
}

// now is the footprint of this process. A test is skipped where that cannot be measured.
func now(t spec) Footprint {
	t.Helper()
	f, err := Now()
	if err != nil {
		testenv.NotShown(t, err.Error())
	}
	return f
}

// stays is the footprint as soon as what ends has ended, and nothing has grown but by what is allowed.
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

// AddRow logs a row, and adds it to a table of docs/limits.md where `make limits` names the page.
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

// Log is the log of a suite. It keeps nothing while Quiet: what a test remembers would count as a leak.
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
