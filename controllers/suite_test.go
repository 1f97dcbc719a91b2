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
	"github.com/reboot-operator/reboot-operator/controllers/secret"
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
	// logs are what they log.
	logs = &footprint.Log{To: GinkgoWriter}
	// counted are the metrics of every manager under test.
	counted = controllers.NewMetrics(metrics.Registry)
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Manager on a real API server")
}

var _ = BeforeSuite(func() {
	footprint.Precise()
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})))
	SetDefaultEventuallyTimeout(time.Minute) // as long as it may take on a machine that does much else
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(20 * time.Millisecond)
	env = embedded.StartServerFor(GinkgoT())
	scheme, err := controllers.Scheme()
	Expect(err).NotTo(HaveOccurred())
	api, err = client.New(env.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(startManager(requests))
})

// gateInterval is how often gates are asked here.
const gateInterval = 500 * time.Millisecond

// paces are those of the managers under test. Counts are written before atRest sees nothing happen.
var paces = controllers.Paces{Counts: 200 * time.Millisecond, AgentEvent: 100 * time.Millisecond, AgentList: time.Second}

// startManager runs a manager the way main does, without the Lease, and returns a function that ends it. It looks for agents in
// a namespace, where there is one.
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

// questions are those to gates. A spec that locks it holds them back.
var questions struct {
	sync.RWMutex
	open atomic.Int32
}

// newGates asks as main does, but oftener.
func newGates(mgr ctrl.Manager) *gate.Evaluator {
	objects, err := gate.NewObjects(mgr.GetConfig())
	Expect(err).NotTo(HaveOccurred())
	prometheus := &gate.Prometheus{Secrets: secret.Reader{Reader: mgr.GetAPIReader(), Namespace: "default"}}
	return gate.NewEvaluator(impatient[v1alpha1.PrometheusGate]{prometheus}, impatient[v1alpha1.ObjectGate]{objects}, clock.RealClock{}, gateInterval)
}

// impatient asks gates, and waits for a server for gateInterval, not for ten seconds: an answer counts for two of them, from its question on.
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

// hurriedClock is the real clock, but for its timers: each takes a tenth of its time.
type hurriedClock struct{ clock.RealClock }

func (c hurriedClock) NewTimer(d time.Duration) clock.Timer { return c.RealClock.NewTimer(d / 10) }

// shiftedClock is the real clock, put forward.
type shiftedClock struct{ by atomic.Int64 }

func (c *shiftedClock) Now() time.Time                  { return time.Now().Add(time.Duration(c.by.Load())) }
func (c *shiftedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// forward puts the clock forward until the end of the spec. Timers of the managers are not: an event has to wake them.
func (c *shiftedClock) forward(by time.Duration) {
	c.by.Store(int64(by))
	DeferCleanup(func() { c.by.Store(0) })
}

// requestLog notes what a manager asks of the API server.
type requestLog struct {
	wire.Wire

	// cache is what the manager has read.
	cache client.Reader
}

// isNotification reports what a notification of an earlier spec may still ask: its Secret, and the event that it failed.
func isNotification(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/secrets/") || strings.Contains(r.URL.Path, "/events")
}

// meddleWith has somebody come in between from now on until the end of the spec, before a request is sent, and refuse it.
func (l *requestLog) meddleWith(meddle func(*http.Request) (refuse bool)) {
	l.Meddle(meddle, wire.Forbid)
	DeferCleanup(func() { l.Meddle(nil, nil) })
}
