package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestCrashAtEveryWrite_Rollback (behaviour 27): an update that rolls back is tried twice, and no more, whichever process
// is killed at whichever write.
func TestCrashAtEveryWrite_Rollback(t *testing.T) {
	api, config := crashCluster(t)
	run := func(t *testing.T, name string, at int) []string {
		t.Helper()
		return runScenario(&scenario{t: t, api: api, config: config, name: name, at: at, fault: killAfter, rollsBack: true}, "a")
	}
	reference := run(t, "reference", 0)
	t.Logf("%d writes in the reference run:\n%s", len(reference), strings.Join(reference, "\n"))
	if len(reference) < 15 {
		t.Fatalf("only %d writes: the scenario does not do what it should", len(reference))
	}
	for k := 1; k <= len(reference); k++ {
		if testing.Short() && k%5 != 0 {
			continue
		}
		t.Run(fmt.Sprintf("write %d (%s) %s", k, reference[k-1], killAfter), func(t *testing.T) {
			run(t, fmt.Sprintf("w%d", k), k)
		})
	}
}
