// Package embedded runs a whole Kubernetes cluster on one machine without containers. etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler and kwok are child processes on
// 127.0.0.1. Nodes are simulated, or real ones (package rack). The cluster starts in a few seconds
// and leaves nothing behind.
//
// It is as strict as a real cluster in what matters here: Node and RBAC authorization,
// NodeRestriction, client certificates, and tokens bound to pods. An audit log records who asked
// for what.
package embedded

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

const (
	// readyPoll is the interval at which Await polls.
	readyPoll = 50 * time.Millisecond
	// patience is the time that a program gets to become ready. On an idle machine it takes
	// seconds.
	patience = 3 * time.Minute
	// stopGrace is the time that programs get to end by themselves. Nothing in the cluster is worth
	// keeping.
	stopGrace = 3 * time.Second
	// never is longer than any cluster runs.
	never = 240 * time.Hour
)

// Options describes how to start a cluster. The zero value is a good choice.
type Options struct {
	// KubeletGrace is the time that a kubelet may be silent before its node becomes NotReady. If
	// zero, all nodes are simulated, and the simulation decides when one is down.
	KubeletGrace time.Duration
	// ServerOnly starts etcd and the API server without any controller. Nodes and pods have the
	// status that the caller writes, and a pod does not need a ServiceAccount.
	ServerOnly bool
	// Bare leaves out the scheduler, kwok and the audit log, and all controllers except those of
	// PodDisruptionBudgets and ServiceAccounts. The caller plays nodes and pods.
	Bare bool
	// Step runs one named step of the start and may report progress. If nil, steps just run.
	Step func(name string, run func() error) error
}

// Cluster is a running cluster.
type Cluster struct {
	folders
	programs
	credentials
	kubectl

	options Options
	etcd    string
	admin   string
	config  *rest.Config
	client  kubernetes.Interface
}

// Start starts a cluster and returns when its API server answers and its controllers run. If it
// fails halfway, or ctx ends, it removes everything it started.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if options.Step == nil {
		options.Step = func(_ string, run func() error) error { return run() }
	}
	c := &Cluster{
		options:  options,
		programs: programs{running: map[string]*process.Process{}, launched: map[string]process.Program{}},
	}
	if err := c.start(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return err
	}
	if err := c.prepare(ports[0]); err != nil {
		return err
	}
	if err := c.options.Step("etcd and kube-apiserver", func() error { return c.startServer(ctx, ports) }); err != nil || c.options.ServerOnly {
		return err
	}
	name := "kube-controller-manager, kube-scheduler, kwok"
	if c.options.Bare {
		name = "kube-controller-manager"
	}
	return c.options.Step(name, func() error { return c.startControllers(ctx) })
}

// prepare creates the folders, the certificates and the administrator's kubeconfig.
func (c *Cluster) prepare(port int) error {
	if err := c.makeFolders(); err != nil {
		return err
	}
	c.Processes = process.NewGroup(c.Dir)
	authority, err := newAuthority()
	if err != nil {
		return err
	}
	c.credentials = credentials{folder: c.Dir, server: fmt.Sprintf("https://127.0.0.1:%d", port), authority: authority}
	if c.admin, err = c.UserKubeconfig("admin", "system:masters"); err != nil {
		return err
	}
	c.kubectl = kubectl{path: c.asset("kubectl"), kubeconfig: c.admin, home: c.Dir}
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.admin); err != nil {
		return fmt.Errorf("reading kubeconfig %s: %w", c.admin, err)
	}
	// The administrator is this process: the API server does not need protection from it.
	c.config.QPS = -1
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	return nil
}

func (c *Cluster) startServer(ctx context.Context, ports []int) error {
	programs, err := c.serverPrograms(ports[0], ports[1], ports[2])
	if err != nil {
		return err
	}
	if err := c.programs.start(programs...); err != nil {
		return err
	}
	return c.awaitServer(ctx)
}

func (c *Cluster) awaitServer(ctx context.Context) error {
	return c.await(ctx, "the API server to be ready", func(ctx context.Context) bool {
		_, err := c.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil
	})
}

func (c *Cluster) startControllers(ctx context.Context) error {
	programs, err := c.controllerPrograms()
	if err != nil {
		return err
	}
	if err := c.programs.start(programs...); err != nil {
		return err
	}
	return c.await(ctx, "the controllers to run", func(ctx context.Context) bool {
		_, err := c.client.CoreV1().ServiceAccounts(corev1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
}

// await polls, but fails at once if one of the cluster's programs has ended.
func (c *Cluster) await(ctx context.Context, description string, ready func(context.Context) bool) error {
	return Await(ctx, description, patience, c.Err, ready)
}

// Await polls until something is ready, within a limit, and fails at once if failed returns an
// error.
func Await(ctx context.Context, description string, limit time.Duration, failed func() error, ready func(context.Context) bool) error {
	err := wait.PollUntilContextTimeout(ctx, readyPoll, limit, true, func(ctx context.Context) (bool, error) { return ready(ctx), failed() })
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", description, err)
	}
	return nil
}

// Config returns the configuration of a cluster administrator, without a rate limit.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.admin }

// Address returns the address of the API server, HOST:PORT.
func (c *Cluster) Address() string { return strings.TrimPrefix(c.server, "https://") }

// Client returns the administrator's typed client.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Stop ends every process of the cluster, and removes its files unless KeepLogs was called. It
// returns when all are gone.
func (c *Cluster) Stop() {
	if c.Processes != nil {
		// Stop is usually called after the caller's context has ended, so it must not use that
		// context.
		ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
		defer cancel()
		c.Processes.Stop(ctx)
	}
	c.removeFolders()
}

// EtcdAddress returns the URL of etcd.
func (c *Cluster) EtcdAddress() string { return c.etcd }

// Revive restarts a program that Kill has ended, with its previous data, and returns when the API
// server answers.
func (c *Cluster) Revive(ctx context.Context, name string) error {
	if err := c.again(name); err != nil {
		return err
	}
	return c.awaitServer(ctx)
}

func (c *Cluster) asset(name string) string { return filepath.Join(testenv.Assets(), name) }

// StartServer starts etcd and an API server with the project's kind and without controllers, as
// suites need them. The caller stops it.
func StartServer(ctx context.Context) (*Cluster, error) {
	c, err := Start(ctx, Options{ServerOnly: true, Bare: true})
	if err != nil {
		return nil, err
	}
	if err := c.InstallKind(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// test is a [testing.T], or Ginkgo's. Programs use this package too, and should not import package
// testing.
type test interface {
	Helper()
	Context() context.Context
	Cleanup(stop func())
	Fatal(args ...any)
}

// StartServerFor is StartServer for one test. If it fails, the test ends, and the API server ends
// with the test.
func StartServerFor(t test) *Cluster {
	t.Helper()
	c, err := StartServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c
}
