package main

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/limits/footprint"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var (
	// server is the API server of all tests, which run one after the other. TestMain stops it. A
	// test with a manager deletes its nodes and policies, because later managers would otherwise
	// act on them.
	server *embedded.Cluster
	// cluster is the configuration of an administrator's client.
	cluster *rest.Config
	// api is an administrator's client without a cache.
	api client.Client
	// logs is the log of the agents.
	logs = &footprint.Log{To: GinkgoWriter}
)

func TestAgent(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Agent")
}

// TestMain sets the loggers of the process before anything reads them, because other tests here run
// managers, too.
func TestMain(m *testing.M) {
	footprint.Precise()
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})))
	klog.SetLogger(ctrl.Log)
	code := m.Run()
	if server != nil {
		server.Stop()
	}
	os.Exit(code)
}

// startServer starts the API server for the first test that needs it.
func startServer() (config *rest.Config, err error) {
	if server == nil {
		if server, err = embedded.StartServer(context.Background()); err != nil {
			return nil, err
		}
	}
	return server.Config(), nil
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(time.Minute) // long enough for a busy machine
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)

	var err error
	cluster, err = startServer()
	Expect(err).NotTo(HaveOccurred())
	api, err = testenv.NewClient(cluster)
	Expect(err).NotTo(HaveOccurred())
})
