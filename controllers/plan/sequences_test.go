package plan_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/ledger"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
)

var (
	update = flag.Bool("update", false, "rewrite testdata/*.golden")
	seed   = flag.Uint64("seed", 0, "the one seed to play the sequences with; 0: some fixed ones and some fresh ones")
	fresh  = flag.Int("fresh", 100, "how many fresh seeds to play the sequences with")
)

var planOptions = []cmp.Option{
	cmpopts.EquateEmpty(), cmp.AllowUnexported(ledger.After{}, record.Node{}, underway.Reboot{}, plan.Blocked{}),
	cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) }),
}

// TestSequences plays stories of fleets: the planner, applied like the real manager applies it, and
// agents that act by the real agent's rules. The invariants are checked at every instant. In the
// default order the transcript is golden. With a seed everybody acts in random order, and the
// manager dies before writes and loses races. The fleet must end the same.
func TestSequences(t *testing.T) {
	for name, s := range sequences() {
		t.Run(name, func(t *testing.T) {
			c := play(t, s, nil)
			c.checkRest()
			golden(t, name, "# "+s.about+"\n\n"+c.String())
			for _, seed := range seeds() {
				t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
					other := play(t, s, rand.New(rand.NewPCG(seed, 0)))
					other.checkRest()
					if diff := cmp.Diff(outcome(c), outcome(other)); diff != "" {
						t.Fatalf("ends in another way (-default +seed):\n%s\n%s", diff, other.String())
					}
				})
			}
		})
	}
}

func seeds() []uint64 {
	if *seed != 0 {
		return []uint64{*seed}
	}
	seeds := []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	if testing.Short() {
		return seeds
	}
	for range *fresh {
		seeds = append(seeds, rand.Uint64())
	}
	return seeds
}

// outcome returns how each node ends.
func outcome(c *cluster) map[string]string {
	ends := map[string]string{}
	for name, h := range c.hosts {
		ends[name] = "deleted"
		if h.node != nil {
			n := h.view()
			ends[name] = fmt.Sprintf("boot %d, Ready %t, cordoned %t, needs a reboot %t", h.boots, n.Ready, n.Cordoned, n.NeedsReboot())
		}
	}
	return ends
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); -update rewrites it:\n%s", file, diff)
	}
}
