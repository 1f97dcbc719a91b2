package limits

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/limits/footprint"
)

// stopLimit is within which a program that is asked to end has to be gone.
const stopLimit = 5 * time.Second

// ends sends SIGTERM to a program in a phase, and measures how long it takes.
func ends(t *testing.T, program, phase string, p *process.Process) {
	t.Helper()
	if !p.Alive() {
		t.Fatalf("%s has ended before: %v", program, p.ExitError())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*stopLimit)
	defer cancel()
	begin := time.Now()
	p.Stop(ctx)
	took := time.Since(begin)
	must(t, footprint.AddRow("stops", program, phase, fmt.Sprintf("%.1f s", took.Seconds())))
	if took > stopLimit {
		t.Errorf("%s took %s to end while %s: %v", program, took.Round(10*time.Millisecond), phase, p.ExitError())
	}
	t.Logf("%s, while %s: %s", program, phase, took.Round(time.Millisecond))
}
