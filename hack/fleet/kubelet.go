package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

const (
	// namespace is the operator's namespace.
	namespace = "reboot-operator-system"
	// stopGrace is the time that a process has to end after its pod is deleted, like
	// terminationGracePeriodSeconds.
	stopGrace = 10 * time.Second
	// managerProgram and agentProgram are the names of the containers in config/manager and
	// config/agent, and of their programs.
	managerProgram, agentProgram = "manager", "agent"
	// maxRestarts is the number of times that a program may end by itself before this is an error.
	maxRestarts = 3
)

// kubelet runs the pods of some namespaces as processes, including the operator's.
type kubelet struct {
	cluster    *embedded.Cluster
	namespaces []string
	fail       func(error)
	serve      bool // serve metrics
	checkouts  map[string]string

	mu        sync.Mutex
	hosts     map[string]*Host
	pods      map[types.UID]context.CancelFunc
	processes map[types.UID]*process.Process
	targets   map[types.UID]MetricsTarget
	fleetlock map[types.UID]string // addresses of the managers that serve it
	closed    bool
	running   sync.WaitGroup
}

// watch runs pods as they are created and deleted, until ctx ends.
func (k *kubelet) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(k.cluster.Client(), 0)
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { k.observe(ctx, object) },
		UpdateFunc: func(_, object any) { k.observe(ctx, object) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			k.end(object.(*corev1.Pod))
		},
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	factory.StartWithContext(ctx)
	return nil
}

// addHost lets pods run on a machine from their next change on.
func (k *kubelet) addHost(h *Host) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hosts[h.Name] = h
}

// host returns the machine of a pod, or nil.
func (k *kubelet) host(pod *corev1.Pod) *Host {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.hosts[pod.Spec.NodeName]
}

func (k *kubelet) observe(ctx context.Context, object any) {
	pod := object.(*corev1.Pod)
	switch {
	case pod.DeletionTimestamp != nil:
		k.end(pod)
	case slices.Contains(k.namespaces, pod.Namespace) && k.host(pod) != nil && pod.Status.Phase == corev1.PodRunning:
		k.begin(ctx, pod)
	}
}

func (k *kubelet) begin(ctx context.Context, pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.pods[pod.UID]; known || k.closed {
		return
	}
	podCtx, cancel := context.WithCancel(ctx)
	k.pods[pod.UID] = cancel
	k.running.Go(func() {
		if err := k.run(podCtx, pod); err != nil && podCtx.Err() == nil {
			k.fail(err)
		}
		if ctx.Err() == nil {
			k.confirm(ctx, pod)
		}
	})
}

func (k *kubelet) end(pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if cancel := k.pods[pod.UID]; cancel != nil {
		cancel()
	}
}

// run keeps the pod's process running until ctx ends, because the pod is deleted or everything
// stops.
func (k *kubelet) run(ctx context.Context, pod *corev1.Pod) error {
	host := k.host(pod)
	program, err := k.prepare(ctx, pod, host)
	if err != nil {
		return err
	}
	for ended := 0; ; {
		p, boot, err := host.start(ctx, k.cluster.Processes, program)
		if err != nil {
			return err
		}
		k.mu.Lock()
		k.processes[pod.UID] = p
		k.mu.Unlock()
		select {
		case <-ctx.Done():
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
			defer cancel()
			p.Stop(grace)
			return nil
		case <-p.Done():
		}
		if !host.IsIn(boot) {
			continue
		}
		if ended++; ended > maxRestarts {
			return fmt.Errorf("on %s: %w", host.Name, p.ExitError())
		}
	}
}

// prepare claims the pod, so that kwok does not delete it before its process has ended. It returns
// the process for the first container: its command, or else the operator's program of that name
// with the paths of this machine.
func (k *kubelet) prepare(ctx context.Context, pod *corev1.Pod, host *Host) (process.Program, error) {
	if err := k.cluster.ClaimPod(ctx, pod); err != nil {
		return process.Program{}, err
	}
	token, err := k.cluster.Token(ctx, pod.Namespace, pod.Spec.ServiceAccountName, pod)
	if err != nil {
		return process.Program{}, err
	}
	file := filepath.Join(k.cluster.Dir, pod.Name+".token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		return process.Program{}, fmt.Errorf("writing the token of %s: %w", pod.Name, err)
	}
	kubeconfig, err := k.cluster.KubeconfigFor(pod.Name, file)
	if err != nil {
		return process.Program{}, err
	}
	container := pod.Spec.Containers[0]
	program := process.Program{Name: pod.Name}
	if program.Env, err = environment(pod, container.Env); err != nil {
		return program, err
	}
	if len(container.Command) > 0 {
		// As in its image, the process finds the API server and kubectl, and has a writable folder.
		home := filepath.Join(k.cluster.Dir, pod.Name+".home")
		program.Path, program.Args = container.Command[0], slices.Concat(container.Command[1:], container.Args)
		program.Env = append(program.Env, "KUBECONFIG="+kubeconfig, "HOME="+home, "TMPDIR="+home,
			"PATH="+filepath.Dir(k.cluster.KubectlPath())+string(filepath.ListSeparator)+os.Getenv("PATH"))
		return program, os.MkdirAll(home, 0o700) // the error names it
	}
	metrics, err := k.metricsAddress(ctx, pod)
	program.Path = testenv.Shipped(container.Name)
	if checkout := k.checkouts[container.Image[strings.LastIndex(container.Image, ":")+1:]]; checkout != "" {
		program.Path = testenv.ShippedIn(checkout, container.Name)
	}
	program.Args = append(slices.Clone(container.Args), "--kubeconfig="+kubeconfig, "--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address="+metrics)
	if container.Name == agentProgram {
		program.Args = append(program.Args, host.Flags()...)
	}
	if err == nil && slices.ContainsFunc(container.Args, func(arg string) bool { return strings.HasPrefix(arg, fleetlockFlag) }) {
		address, err := k.fleetlockAddress(ctx, pod)
		program.Args = append(program.Args, fleetlockFlag+address)
		return program, err
	}
	return program, err
}

// environment resolves variables like a kubelet.
func environment(pod *corev1.Pod, vars []corev1.EnvVar) ([]string, error) {
	fields := map[string]string{
		"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "spec.nodeName": pod.Spec.NodeName,
		"status.hostIP": "127.0.0.1",
	}
	var env []string
	for _, v := range vars {
		value := v.Value
		if from := v.ValueFrom; from != nil {
			if from.FieldRef == nil || fields[from.FieldRef.FieldPath] == "" {
				return nil, fmt.Errorf("pod %s: the source of variable %s is not simulated", pod.Name, v.Name)
			}
			value = fields[from.FieldRef.FieldPath]
		}
		env = append(env, v.Name+"="+value)
	}
	return env, nil
}

// confirm removes the pod after its process has ended, like a kubelet.
func (k *kubelet) confirm(ctx context.Context, pod *corev1.Pod) {
	now := int64(0)
	err := k.cluster.Client().CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !errors.Is(err, context.Canceled) {
		k.fail(fmt.Errorf("removing pod %s: %w", pod.Name, err))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.processes, pod.UID)
	delete(k.targets, pod.UID)
	delete(k.fleetlock, pod.UID)
}

// wait prevents further pods from starting, and waits until all processes have ended. Their context
// must have ended before.
func (k *kubelet) wait() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.running.Wait()
}

// of returns the running processes of a program.
func (k *kubelet) of(program string) []*process.Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found []*process.Process
	for _, p := range k.processes {
		if p.Alive() && filepath.Base(p.Path) == program {
			found = append(found, p)
		}
	}
	return found
}

// fleetlockFlag is the flag with the address of a manager's FleetLock server.
const fleetlockFlag = "--fleetlock-bind-address="

// fleetlockAddress returns an address for one pod, which stays the same when its program restarts.
func (k *kubelet) fleetlockAddress(ctx context.Context, pod *corev1.Pod) (string, error) {
	port, err := embedded.FreePort(ctx)
	if err != nil {
		return "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fleetlock[pod.UID] = fmt.Sprintf("127.0.0.1:%d", port)
	return k.fleetlock[pod.UID], nil
}

// fleetlockServers returns the addresses at which running pods serve FleetLock.
func (k *kubelet) fleetlockServers() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.fleetlock))
}

// noMetrics is the address for serving no metrics.
const noMetrics = "0"

// MetricsTarget is the address at which a pod of the operator serves its metrics. It is on this
// machine, and differs from the port in the manifest.
type MetricsTarget struct {
	Pod     *corev1.Pod
	Address string
}

// MetricsTargets returns the targets of the running pods, with Options.Metrics.
func MetricsTargets(f *Fleet) []MetricsTarget {
	f.kubelet.mu.Lock()
	defer f.kubelet.mu.Unlock()
	return slices.Collect(maps.Values(f.kubelet.targets))
}

// metricsAddress returns an address for one pod, which stays the same when its program restarts.
func (k *kubelet) metricsAddress(ctx context.Context, pod *corev1.Pod) (string, error) {
	if !k.serve {
		return noMetrics, nil
	}
	port, err := embedded.FreePort(ctx)
	if err != nil {
		return "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.targets[pod.UID] = MetricsTarget{Pod: pod, Address: fmt.Sprintf("127.0.0.1:%d", port)}
	return k.targets[pod.UID].Address, nil
}
