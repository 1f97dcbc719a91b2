package fleet

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
)

// shared is the cluster of all tests, one after the other. Nil: the next test starts one.
var shared *embedded.Cluster

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	code := m.Run()
	if shared != nil {
		shared.Stop()
	}
	os.Exit(code)
}

// emptyCluster is a cluster with nothing in it. What brings manifests is called when the test ends: they are deleted, as is all else. A
// test that fails takes its cluster along and keeps the logs, so that it cannot fail the next one.
func emptyCluster(t *testing.T, brings func() [][]byte) *embedded.Cluster {
	t.Helper()
	if shared == nil {
		var err error
		shared, err = embedded.Start(t.Context(), embedded.Options{})
		must(t, err)
	}
	c := shared
	t.Cleanup(func() {
		if !t.Failed() {
			err := c.Clear(context.WithoutCancel(t.Context()), brings()...)
			if err == nil {
				return
			}
			t.Error(err)
		}
		t.Logf("logs are in %s", c.Dir)
		shared, c.KeepFiles = nil, true
		c.Stop()
	})
	return c
}

// start starts a fleet in an empty cluster: the programs that ship, and machines that are down for a moment only.
func start(t *testing.T, o Options) *Fleet {
	t.Helper()
	var f *Fleet
	o.cluster = emptyCluster(t, func() [][]byte { return f.manifests })
	o.Engines, o.RebootDuration, o.Shipped = []Engine{engineNamed(t, DefaultEngine)}, 100*time.Millisecond, true
	ctx := context.WithoutCancel(t.Context()) // the managers have to see the end of their policies
	var err error
	f, err = Start(ctx, o)
	must(t, err)
	t.Cleanup(func() {
		defer f.Stop()
		if !t.Failed() {
			_, err := f.Cluster.Kubectl(ctx, nil, "delete", "rebootpolicies", "--all", "--timeout=1m")
			must(t, err)
		}
	})
	return f
}

func engineNamed(t *testing.T, name string) Engine {
	t.Helper()
	named, err := ParseEngines(name)
	if err != nil {
		t.Fatal(err)
	}
	return named[0]
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
