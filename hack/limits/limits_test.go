package limits

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var (
	env       *testenv.Environment
	api       client.Client
	processes *process.Group
	// manager and agent are the programs.
	manager, agent string
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	stop, err := start()
	defer stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// start builds the programs as they ship and starts an API server.
func start() (stop func(), err error) {
	stop = func() {}
	for name, program := range map[string]*string{"manager": &manager, "agent": &agent} {
		if *program, err = testenv.Build(context.Background(), name); err != nil {
			return stop, err
		}
	}
	folder, err := os.MkdirTemp("", "limits")
	if err != nil {
		return stop, err
	}
	stop = func() { _ = os.RemoveAll(folder) }
	if env, err = testenv.Start(); err != nil {
		return stop, err
	}
	processes = process.NewGroup(folder)
	stop = func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		processes.Stop(now)
		_ = env.Stop()
		_ = os.RemoveAll(folder)
	}
	api, err = client.New(env.Config, client.Options{Scheme: scheme.Scheme})
	return stop, err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until polls for what must come true within half a minute.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for !is() {
		select {
		case <-limit:
			t.Fatalf("waited for %s in vain", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
