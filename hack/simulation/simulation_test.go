package simulation

import (
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// few is the number of small worlds in a plain run of the tests. It stops early after atMost, but
// not before fewest worlds. mostKinds is the number of kinds of faults that must happen in them.
const (
	few, fewest, mostKinds = 6, 3, 25
	atMost                 = 12 * time.Second
	// fewNodes is the size of a large world in a plain run.
	fewNodes = 300
	// progress is the number of worlds between two progress lines.
	progress = 100
)

// TestSimulation runs SEEDS worlds from seed FIRST (1 by default), as many as SECONDS_AT_MOST
// allows. With SEED it runs only that world and prints its story. With NODES the worlds are large,
// with that many nodes. It fails after fewer than SEEDS_AT_LEAST worlds, or if a kind of fault is
// rare in small worlds, because a slow machine then proves less than promised.
func TestSimulation(t *testing.T) {
	draw, worlds, often, nodes := Draw, "small worlds", oftenEnough, testenv.Number("NODES", 0)
	if nodes > 0 {
		draw = func(seed uint64) Script { return DrawLarge(seed, nodes) }
		worlds, often = "large worlds", 0 // their scripts do not have all kinds
	}
	if seed, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		live(t, draw(seed), func(r judge.Change) { fmt.Println(line(r)) })
		return
	}
	s := seeds{
		draw: draw, next: uint64(testenv.Number("FIRST", 1)), left: testenv.Number("SEEDS", few),
		until: time.Now().Add(time.Duration(testenv.Number("SECONDS_AT_MOST", int(atMost.Seconds()))) * time.Second),
	}
	s.live(t)
	floor := testenv.Number("SEEDS_AT_LEAST", 0)
	switch lacks := s.figures.lacks(floor, 1); {
	case floor > 0:
		for _, kind := range s.figures.lacks(floor, often) {
			t.Error(kind)
		}
	case s.figures.Seeds >= fewest && len(lacks) > len(faults)+len(kinds)-mostKinds:
		t.Errorf("fewer than %d kinds of faults: %q", mostKinds, lacks)
	}
	if page := os.Getenv("FIGURES"); page != "" {
		if err := document.Edit(page, worlds, func(string) string { return s.figures.Summary() }); err != nil {
			t.Error(err)
		}
	}
}

// TestSimulation_Large runs one world of hundreds of nodes.
func TestSimulation_Large(t *testing.T) {
	if testing.Short() || os.Getenv("FIGURES") != "" {
		t.Skip("`make ci` runs it, and `make simulation NODES=5000` is this test at large")
	}
	s := seeds{draw: func(seed uint64) Script { return DrawLarge(seed, fewNodes) }, next: 1, left: 1, until: time.Now().Add(time.Hour)}
	s.live(t)
}

// seeds hands out seeds to two workers.
type seeds struct {
	draw  func(uint64) Script
	until time.Time

	mu      sync.Mutex
	next    uint64
	left    int
	taken   int
	figures Figures
}

func (s *seeds) live(t *testing.T) {
	t.Helper()
	// Almost everything that a world allocates is garbage, and memory is available.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	began, cpu := time.Now(), cpuTime(t)
	t.Run("seeds", func(t *testing.T) {
		for worker := range 2 {
			t.Run(strconv.Itoa(worker), func(t *testing.T) {
				t.Parallel()
				for seed, more := s.take(); more; seed, more = s.take() {
					script := s.draw(seed)
					s.count(t, script, live(t, script, nil))
				}
			})
		}
	})
	s.figures.CPU = cpuTime(t) - cpu
	t.Logf("in %.0f s:\n%s", time.Since(began).Seconds(), s.figures.String())
	if s.figures.Reboots == 0 {
		t.Error("nothing was ever rebooted")
	}
}

// oftenEnough is the minimum count of each kind of fault in runs with a minimum number of seeds.
// The rarest kinds happen a dozen times in a hundred worlds.
const oftenEnough = 3

// faults lists the faults of requests and processes. All others come from the scripts.
var faults = []What{
	"requests while the API server was down", "heartbeats between a read and its write", "watches dropped", "watches compacted", "answers lost",
	"writes that came late", "409 without a reason", "429", "500", "crashes between requests", "leaders that went on after their lease",
}

var kinds = slices.Sorted(maps.Keys(strikes))

// lacks lists what a run failed to show: fewer worlds than the minimum, or kinds of faults that
// were too rare.
func (f *Figures) lacks(floor, often int) (lacks []string) {
	if f.Seeds < floor {
		lacks = append(lacks, fmt.Sprintf("%d seeds, want at least %d: give it more time (SECONDS_AT_MOST) or run it on an idle machine", f.Seeds, floor))
	}
	for _, kind := range append(faults, kinds...) {
		if n := f.Counts[string(kind)]; n < often {
			lacks = append(lacks, fmt.Sprintf("%q has happened %d times, want at least %d", kind, n, often))
		}
	}
	return lacks
}

func TestFigures_Lacks(t *testing.T) {
	figures := Figures{Seeds: 100, Counts: map[string]int{}}
	for _, kind := range append(faults, kinds...) {
		figures.Counts[string(kind)] = oftenEnough
	}
	if lacks := figures.lacks(100, oftenEnough); lacks != nil {
		t.Errorf("all is there, and it lacks %q", lacks)
	}
	figures.Seeds, figures.Counts["429"], figures.Counts[string(Compact)] = 99, oftenEnough-1, 0
	if lacks := figures.lacks(100, oftenEnough); len(lacks) != 3 {
		t.Errorf("a seed, a request's fault and a script's are missing, and it lacks %q", lacks)
	}
}

// count adds the result of a world, and logs the progress now and then.
func (s *seeds) count(t *testing.T, script Script, result Result) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures.Add(script, result)
	if s.figures.Seeds%progress == 0 {
		t.Logf("%d seeds, %d left, %d reboots", s.figures.Seeds, s.left, s.figures.Reboots)
	}
}

func (s *seeds) take() (seed uint64, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 || s.taken >= fewest && !time.Now().Before(s.until) {
		return 0, false
	}
	s.next, s.left, s.taken = s.next+1, s.left-1, s.taken+1
	return s.next - 1, true
}

// cpuTime returns the CPU time of this process.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// live runs one world in its own bubble. It reports violations outside of the bubble, because a
// failed bubble ends its test.
func live(t *testing.T, script Script, record func(judge.Change)) (result Result) {
	t.Helper()
	folder := t.TempDir()
	var err error
	synctest.Test(t, func(t *testing.T) { result, err = Run(t.Context(), script, folder, record) })
	if err != nil {
		t.Errorf("seed %d: %v", script.Seed, err)
	}
	for _, v := range result.Violations {
		t.Errorf("seed %d: %s", script.Seed, v)
	}
	if len(result.Violations) > 0 {
		t.Logf("its story: make simulation SEED=%d, and NODES=%d if it was a large one", script.Seed, len(script.Nodes))
	}
	return result
}

// TestSimulation_Replays tests that a seed always gives the same script, which is needed to replay
// a failure.
func TestSimulation_Replays(t *testing.T) {
	if diff := cmp.Diff(Draw(3), Draw(3)); diff != "" {
		t.Errorf("the script is another one:\n%s", diff)
	}
}
