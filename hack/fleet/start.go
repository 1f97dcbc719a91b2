package fleet

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/hack/judge/feed"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// managers is the number of manager replicas in config/manager.
const managers = 2

func (f *Fleet) start(ctx context.Context, o Options) error {
	err := o.Step("dbus-daemon", func() error { return installBus(ctx) })
	if err == nil {
		err = o.Step("manager and agent, built", func() error { return build(ctx) })
	}
	if err != nil {
		return err
	}
	if f.Cluster, err = embedded.Start(ctx, embedded.Options{Step: o.Step}); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{fmt.Sprintf("%d nodes, each with its own D-Bus", o.Nodes), func() error { return f.startHosts(ctx, o) }},
		{"manifests and the workload", func() error { return f.apply(ctx, o) }},
		{fmt.Sprintf("%d managers, %d agents", managers, o.Nodes), func() error { return f.awaitPrograms(ctx) }},
		{"every pod runs, every agent reports", func() error { return f.awaitRest(ctx) }},
	} {
		if err := o.Step(step.name, step.run); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) startHosts(ctx context.Context, o Options) error {
	f.Hosts = make([]*Host, o.Nodes)
	group, ctx := errgroup.WithContext(ctx)
	for i := range f.Hosts {
		name := fmt.Sprintf("node-%0*d", len(strconv.Itoa(o.Nodes)), i+1) // sorts the same by number and by letter
		group.Go(func() (err error) {
			if err := f.Cluster.AddNode(ctx, name); err != nil {
				return err
			}
			f.Hosts[i], err = newHost(ctx, f.Cluster, name, o.Engines[i%len(o.Engines)])
			return err
		})
	}
	return group.Wait()
}

// apply applies the manifests, and starts the kubelet and the reboots.
func (f *Fleet) apply(ctx context.Context, o Options) error {
	var err error
	if f.Client, err = testenv.NewClient(f.Cluster.Config()); err != nil {
		return err
	}
	f.kubelet = &kubelet{
		cluster: f.Cluster, namespaces: append([]string{namespace}, o.Run...), hosts: map[string]*Host{}, fail: f.fail,
		pods: map[types.UID]context.CancelFunc{}, processes: map[types.UID]*process.Process{},
		serve: o.Metrics, checkouts: o.Checkouts, targets: map[types.UID]MetricsTarget{}, fleetlock: map[types.UID]string{},
	}
	for _, h := range f.Hosts {
		f.attach(ctx, h, o.RebootDuration)
	}
	if err := f.kubelet.watch(ctx); err != nil {
		return err
	}
	if o.Manifests == "" {
		folder, err := f.folder(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(o.Engines, func(e Engine) bool { return e.Name == zincatiName }) && !slices.Contains(o.Components, "fleetlock") {
			o.Components = append(slices.Clone(o.Components), "fleetlock")
		}
		if err := testenv.Kustomization(f.Cluster.Dir, folder, o.Components...); err != nil {
			return err
		}
		o.Manifests = f.Cluster.Dir
	}
	if err := f.Cluster.Apply(ctx, o.Manifests); err != nil {
		return err
	}
	// The workload may contain a policy.
	if err := f.Cluster.AwaitKinds(ctx); err != nil {
		return err
	}
	changes, err := feed.Watch(ctx, f.Client, feed.Kind{List: &corev1.NodeList{}}, feed.Kind{List: &v1alpha1.RebootPolicyList{}})
	if err != nil {
		return err
	}
	f.Recorder = &Recorder{Feed: changes}
	return f.applyWorkload(ctx, o.Workload)
}

// attach lets pods run on a machine, and the machine reboot.
func (f *Fleet) attach(ctx context.Context, h *Host, down time.Duration) {
	f.kubelet.addHost(h)
	if h.Zincati != nil {
		h.Zincati.servers = f.kubelet.fleetlockServers
		h.Zincati.Start()
	}
	h.Logind.OnReboot(func() { // each reboot that it accepts
		f.background.Go(func() {
			if err := h.reboot(ctx, down); err != nil && ctx.Err() == nil {
				f.fail(fmt.Errorf("rebooting %s: %w", h.Name, err))
			}
		})
	})
}

func (f *Fleet) applyWorkload(ctx context.Context, manifest []byte) error {
	if len(manifest) == 0 {
		return nil
	}
	return f.Cluster.ApplyManifest(ctx, manifest)
}

// folder returns the manifests that fit the API server, as `make deploy` selects them.
func (f *Fleet) folder(ctx context.Context) (string, error) {
	command := exec.CommandContext(ctx, "bash", "-euc", `. hack/kubectl.sh; config_for "$(server_version)"`)
	command.Dir = testenv.Root()
	command.Env = append(os.Environ(), "KUBECTL="+f.Cluster.KubectlPath(), "KUBECONFIG="+f.Cluster.Kubeconfig())
	text, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("choosing manifests: %w: %s", err, text)
	}
	return strings.TrimSpace(string(text)), nil
}

func (f *Fleet) awaitPrograms(ctx context.Context) error {
	return f.Await(ctx, "the managers and agents to start", func() bool {
		return len(f.kubelet.of(managerProgram)) == managers && len(f.kubelet.of(agentProgram)) == len(f.Hosts)
	})
}

func (f *Fleet) awaitRest(ctx context.Context) error {
	err := f.Await(ctx, "every agent to report", func() bool {
		return f.all(func(v timeline.View) bool { return v.Reports })
	})
	if err != nil {
		return err
	}
	_, err = f.Cluster.Kubectl(ctx, nil, "wait", "deployment", "--all", "--all-namespaces", "--for=condition=Available", "--timeout=60s")
	return err
}

// build builds the manager and the agent.
func build(ctx context.Context) error {
	_, err := testenv.Build(ctx, managerProgram)
	if err == nil {
		_, err = testenv.Build(ctx, agentProgram)
	}
	return err
}

// buildControlPlane builds the control plane's programs if they are missing or outdated. This takes
// minutes and is shown on standard output. With KUBEBUILDER_ASSETS, users have to provide them.
func buildControlPlane(ctx context.Context) error {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "kwok")); err != nil {
			return fmt.Errorf("KUBEBUILDER_ASSETS is %s, which has no kwok: `make controlplane` builds everything needed into bin/k8s", dir)
		}
		return nil
	}
	script := exec.CommandContext(ctx, filepath.Join(testenv.Root(), "hack", "controlplane", "build.sh"))
	script.Stdout, script.Stderr = os.Stdout, os.Stderr
	// SIGTERM ends the go command. A running compiler ends by itself.
	script.Cancel = func() error { return script.Process.Signal(syscall.SIGTERM) }
	if err := script.Run(); err != nil {
		return fmt.Errorf("building the control plane: %w", err)
	}
	return nil
}

// installBus makes sure that dbus-daemon exists. Root on Debian and similar systems gets the
// package installed. Others get an error with the package's name.
func installBus(ctx context.Context) error {
	script := exec.CommandContext(ctx, filepath.Join(testenv.Root(), "hack", "prerequisites.sh"), "dbus-daemon")
	if output, err := script.CombinedOutput(); err != nil {
		return fmt.Errorf("installing dbus-daemon: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}
