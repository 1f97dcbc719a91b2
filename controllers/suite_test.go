package controllers_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers"
	"github.com/reboot-operator/reboot-operator/controllers/gate"
	"github.com/reboot-operator/reboot-operator/controllers/reading"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/limits/footprint"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

var (
	env      *embedded.Cluster
	api      client.Client
	requests = &requestLog{Wire: wire.Wire{Requests: wire.Requests{Others: isNotification}}}
	// now is the clock of every manager under test.
	now = &shiftedClock{}
	// logs is the log of these managers.
	logs = &footprint.Log{To: GinkgoWriter}
	// counted holds the metrics of every manager under test.
	counted = controllers.NewMetrics(metrics.Registry)
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Manager on a real API server")
}

var _ = BeforeSuite(func() {
	footprint.Precise()
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})))
	SetDefaultEventuallyTimeout(time.Minute) // long enough for a busy machine
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(20 * time.Millisecond)
	env = embedded.StartServerFor(GinkgoT())
	scheme, err := controllers.Scheme()
	Expect(err).NotTo(HaveOccurred())
	api, err = client.New(env.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(startManager(requests))
})

// gateInterval is the interval of queries of gates in this suite.
const gateInterval = 500 * time.Millisecond

// paces are the delays of the managers under test. They are shorter than what atRest waits for.
var paces = controllers.Paces{Counts: 200 * time.Millisecond, AgentEvent: 100 * time.Millisecond, AgentList: time.Second}

// startManager runs a manager as main does, but without the Lease, and returns a function that
// stops it. If a namespace is given, it watches the agents there.
func startManager(log *requestLog, agents ...string) func() {
	config := env.Config()
	config.Wrap(log.Wrap)
	namespace := strings.Join(agents, "")
	mgr, err := testenv.NewManager(config, (&controllers.Options{MetricsAddr: "0", ProbeAddr: "0", Namespace: namespace}).Manager)
	Expect(err).NotTo(HaveOccurred())
	log.cache = mgr.GetCache()
	r := &controllers.RebootPolicyReconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("manager"), Clock: now,
		Gates:          newGates(mgr),
		AgentNamespace: namespace, Paces: paces, Metrics: counted,
	}
	r.Notifier, err = controllers.NewNotifier(mgr, r.Recorder, counted, "default", hurriedClock{})
	Expect(err).NotTo(HaveOccurred())
	Expect(r.SetupWithManager(mgr, controller.Options{})).To(Succeed())
	DeferCleanup(func() {
		Expect(sumOf("controller_runtime_reconcile_panics_total", "")).To(BeZero(), "no reconcile may panic")
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()))
	}
}

// questions delays the queries of gates while a spec locks it.
var questions struct {
	sync.RWMutex
	open atomic.Int32
}

// newGates returns an Evaluator as in main, but with shorter intervals.
func newGates(mgr ctrl.Manager) *gate.Evaluator {
	objects, err := gate.NewObjects(mgr.GetConfig())
	Expect(err).NotTo(HaveOccurred())
	prometheus := &gate.Prometheus{Secrets: reading.Secrets{Reader: mgr.GetAPIReader(), Namespace: "default"}}
	return gate.NewEvaluator(impatient[v1alpha1.PrometheusGate]{prometheus}, impatient[v1alpha1.ObjectGate]{objects}, clock.RealClock{}, gateInterval)
}

// impatient limits each query to gateInterval instead of ten seconds, because an answer counts for
// two intervals from the start of its query.
type impatient[G any] struct{ gate.Asker[G] }

func (i impatient[G]) Ask(ctx context.Context, g G) gate.Answer {
	questions.open.Add(1)
	defer questions.open.Add(-1)
	questions.RLock()
	defer questions.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, gateInterval)
	defer cancel()
	return i.Asker.Ask(ctx, g)
}

// hurriedClock is the real clock, but its timers take a tenth of their time.
type hurriedClock struct{ clock.RealClock }

func (c hurriedClock) NewTimer(d time.Duration) clock.Timer { return c.RealClock.NewTimer(d / 10) }

// shiftedClock is the real clock, advanced by a duration.
type shiftedClock struct{ by atomic.Int64 }

func (c *shiftedClock) Now() time.Time                  { return time.Now().Add(time.Duration(c.by.Load())) }
func (c *shiftedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// forward advances the clock until the end of the spec. The timers of the managers do not notice,
// so an event has to wake them.
func (c *shiftedClock) forward(by time.Duration) {
	c.by.Store(int64(by))
	DeferCleanup(func() { c.by.Store(0) })
}

// requestLog records the requests of a manager.
type requestLog struct {
	wire.Wire

	// cache is the cache of the manager.
	cache client.Reader
}

// isNotification reports whether a request may come from a notification of an earlier spec: for its
// Secret, or for the event that it failed.
func isNotification(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/secrets/") || strings.Contains(r.URL.Path, "/events")
}

// meddleWith calls meddle before each request until the end of the spec. The request is refused if
// meddle returns true.
func (l *requestLog) meddleWith(meddle func(*http.Request) (refuse bool)) {
	l.Meddle(meddle, wire.Forbid)
	DeferCleanup(func() { l.Meddle(nil, nil) })
}
