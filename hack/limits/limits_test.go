// Package limits tests the resources of the operator's two programs, and how fast they end. Real
// processes get SIGTERM in every phase of their work, while a real API server stops answering. The
// tests of controllers and agent check that nothing grows over thousands of cycles and under
// floods. `make limits` runs all of them.
package limits

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/limits/footprint"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// stopLimit is the time within which a program must end after SIGTERM.
const stopLimit = 5 * time.Second

// capped reports whether to skip a phase or a flood. With -short only every fourth one runs.
func capped(phase int) bool { return testing.Short() && phase%4 != 0 }

var (
	env *embedded.Cluster
	api client.Client
	// manager and agent are the paths of the programs.
	manager, agent string
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run builds the shipped programs, and starts an API server for the tests.
func run(m *testing.M) (code int, err error) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	for name, program := range map[string]*string{"manager": &manager, "agent": &agent} {
		if *program, err = testenv.Build(context.Background(), name); err != nil {
			return 0, err
		}
	}
	if env, err = embedded.StartServer(context.Background()); err != nil {
		return 0, err
	}
	defer env.Stop()
	if api, err = testenv.NewClient(env.Config()); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// create creates an object, and deletes it with the test. Namespaces stay, because no controller
// here removes them.
func create(t *testing.T, o client.Object) {
	t.Helper()
	must(t, api.Create(t.Context(), o))
	if _, stays := o.(*corev1.Namespace); stays {
		return
	}
	t.Cleanup(func() {
		// The finalizer belongs to the manager, which is gone.
		_ = api.Patch(context.Background(), o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		_ = api.Delete(context.Background(), o)
	})
}

// until polls a condition for up to half a minute.
func until(t *testing.T, description string, holds func() bool) {
	t.Helper()
	untilWithin(t, 30*time.Second, description, holds)
}

// untilWithin polls a condition for up to the given time.
func untilWithin(t *testing.T, limit time.Duration, description string, holds func() bool) {
	t.Helper()
	come := func(context.Context) (bool, error) { return holds(), nil }
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, limit, true, come); err != nil {
		t.Fatalf("waiting for %s: %v", description, err)
	}
}

// ends sends SIGTERM to a program in a phase, and measures the time until it ends.
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
	if took < 100*time.Millisecond { // docs/limits.md only lists the others
		t.Logf("%s, while %s: %s", program, phase, took)
	} else {
		footprint.AddRow(t, "stops", program, phase, fmt.Sprintf("%.1f s", took.Seconds()))
	}
	if took > stopLimit {
		t.Errorf("%s took %s to end while %s: %v", program, took.Round(10*time.Millisecond), phase, p.ExitError())
	}
}
