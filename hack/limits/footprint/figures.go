package footprint

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

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
	cycles, gone := Times("REBOOTS", few), 0
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

// Flood does something again and again, after a tenth of that: a hundred times, or as many as FLOOD sets. It has to leave nothing behind.
// Rest waits until the program has decided about all of it, and returns how often it has decided; asked is how often it has asked the API
// server. It returns how often it has decided and asked because of the flood.
func Flood(t spec, program, what string, one func(i int), rest, asked func() int) (decisions, requests int) {
	t.Helper()
	size := Times("FLOOD", 100)
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

// Times is how often something is done: what an environment variable sets, or few.
func Times(variable string, few int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return few
}
