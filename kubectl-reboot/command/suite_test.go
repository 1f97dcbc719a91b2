package command_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/hack/wire"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/command"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// asPlugin makes this test binary act as the plugin, so that kubectl can run it.
const asPlugin = "REBOOT_OPERATOR_TEST_AS_PLUGIN"

var (
	env *embedded.Cluster
	api client.Client
	// admin is the kubeconfig of a cluster administrator.
	admin string
	// stopManager stops the manager that most tests use.
	stopManager func()
)

func TestMain(m *testing.M) {
	if name := os.Getenv(asPlugin); name != "" {
		if command.Run(context.Background(), "test", append([]string{name}, os.Args[1:]...)) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestCommand(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "kubectl reboot on a real API server")
}

var _ = BeforeSuite(func() {
	ctrl.SetLogger(logr.Discard())
	SetDefaultEventuallyTimeout(time.Minute) // enough for a busy machine
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	env = embedded.StartServerFor(GinkgoT())
	scheme, err := controllers.Scheme()
	Expect(err).NotTo(HaveOccurred())
	api, err = client.New(env.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	admin = kubeconfig(clientcmdapi.AuthInfo{ClientCertificateData: env.Config().CertData, ClientKeyData: env.Config().KeyData})
	stopManager = startManager()
	DeferCleanup(func() { stopManager() })
})

// startManager runs a manager like the main package does, and returns a function that stops it.
func startManager() func() {
	mgr, err := testenv.NewManager(env.Config(), (&controllers.Options{
		MetricsAddr: "0", ProbeAddr: "0", LeaderElect: true, Namespace: metav1.NamespaceDefault,
	}).Manager)
	Expect(err).NotTo(HaveOccurred())
	r := &controllers.RebootPolicyReconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("manager"), Clock: clock.RealClock{},
		Metrics: controllers.NewMetrics(prometheus.NewRegistry()), Paces: controllers.DefaultPaces,
	}
	Expect(r.SetupWithManager(mgr, controller.Options{})).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()))
	})
}

// kubeconfig writes the kubeconfig of a user, with two contexts.
func kubeconfig(user clientcmdapi.AuthInfo) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"it": {Server: env.Config().Host, CertificateAuthorityData: env.Config().CAData}, "gone": {Server: "https://127.0.0.1:1"}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"me": &user},
		Contexts: map[string]*clientcmdapi.Context{
			"it": {Cluster: "it", AuthInfo: "me"}, "gone": {Cluster: "gone", AuthInfo: "me"},
		},
		CurrentContext: "it",
	}, path)).To(Succeed())
	return path
}

// call is one call of the plugin.
type call struct {
	kubeconfig string
	context    func() context.Context
	in         io.Reader
	out        io.Writer
	screen     *terminal.Terminal
	wire       *wire.Wire
	name       string
	zone       *time.Location
}

// run calls the plugin as the administrator with its output in a pipe, unless edits change that.
func run(args []string, edits ...func(*call)) (stdout, stderr string, err error) {
	var out, errOut bytes.Buffer
	c := &call{kubeconfig: admin, context: context.Background, in: &bytes.Buffer{}, out: &out, screen: terminal.Pipe(&out), wire: &wire.Wire{}, name: "kubectl-reboot", zone: time.UTC}
	for _, edit := range edits {
		edit(c)
	}
	s := &command.Session{
		IOStreams: genericiooptions.IOStreams{In: c.in, Out: c.out, ErrOut: &errOut},
		Config:    genericclioptions.NewConfigFlags(false), Clock: clock.RealClock{}, Screen: c.screen, Zone: c.zone, Version: "v1.2.3",
	}
	s.Config.KubeConfig = &c.kubeconfig
	s.Config.WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.Wrap(c.wire.Wrap)
		return config
	})
	err = s.Run(c.context(), append([]string{c.name}, args...))
	return out.String(), errOut.String(), err
}

// ok calls the plugin and expects it to succeed with nothing on standard error.
func ok(args ...string) string {
	GinkgoHelper()
	stdout, stderr, err := run(args)
	Expect(err).NotTo(HaveOccurred(), stderr)
	Expect(stderr).To(BeEmpty())
	return stdout
}

// stays calls the plugin and expects it to succeed, with warnings that nodes will not be rebooted for
// the reason.
func stays(reason v1alpha1.Reason, args ...string) string {
	GinkgoHelper()
	stdout, stderr, err := run(args)
	Expect(err).NotTo(HaveOccurred(), stderr)
	Expect(stderr).To(MatchRegexp(`^(warning: \S+ will not be rebooted: ` + string(reason) + `: .*; see kubectl reboot explain \S+ --kubeconfig=\S+\n)+$`))
	return stdout
}

// fails calls the plugin and expects one sentence.
func fails(args ...string) string {
	GinkgoHelper()
	stdout, stderr, err := run(args)
	Expect(err).To(HaveOccurred())
	Expect(stdout).To(BeEmpty())
	return stderr
}

// until makes the call end with a context.
func until(ctx context.Context) func(*call) {
	return func(c *call) { c.context = func() context.Context { return ctx } }
}

// wrapped calls look with every request.
func wrapped(look func(*http.Request)) func(*call) {
	return func(c *call) {
		c.wire.Meddle(nil, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			look(r)
			return next.RoundTrip(r)
		})
	}
}
