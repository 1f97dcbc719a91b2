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
	// namespace is the operator's.
	namespace = "reboot-operator-system"
	// stopGrace is how long a process has to end when its pod is deleted, as terminationGracePeriodSeconds is.
	stopGrace = 10 * time.Second
	// managerProgram and agentProgram are the containers of config/manager and config/agent, and their programs.
	managerProgram, agentProgram = "manager", "agent"
	// maxRestarts is how often a program may end by itself before that is an error.
	maxRestarts = 3
)

// kubelet runs the pods of some namespaces as processes, the operator's among them.
type kubelet struct {
	cluster    *embedded.Cluster
	namespaces []string
	hosts      map[string]*Host
	fail       func(error)
	serve      bool // metrics
	checkouts  map[string]string

	mu        sync.Mutex
	pods      map[types.UID]context.CancelFunc
	processes map[types.UID]*process.Process
	targets   map[types.UID]MetricsTarget
	fleetlock map[types.UID]string // where managers serve it
	closed    bool
	running   sync.WaitGroup
}

// watch runs pods as they come and go, until ctx ends.
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

func (k *kubelet) observe(ctx context.Context, object any) {
	pod := object.(*corev1.Pod)
	switch {
	case pod.DeletionTimestamp != nil:
		k.end(pod)
	case slices.Contains(k.namespaces, pod.Namespace) && k.hosts[pod.Spec.NodeName] != nil && pod.Status.Phase == corev1.PodRunning:
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

// run keeps the pod's process running until ctx ends: the pod is deleted, or everything stops.
func (k *kubelet) run(ctx context.Context, pod *corev1.Pod) error {
	host := k.hosts[pod.Spec.NodeName]
	program, err := k.prepare(ctx, pod, host)
	if err != nil {
		return err
	}
	for ended := 0; ; {
		p, cuts, err := host.start(ctx, k.cluster.Processes, program)
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
		if host.cutSince(cuts) {
			continue
		}
		if ended++; ended > maxRestarts {
			return fmt.Errorf("on %s: %w", host.Name, p.ExitError())
		}
	}
}

// prepare claims the pod, so that kwok does not delete it while its process still ends. It returns the process that represents the
// first container: its command, or else the operator's program of its name, with the paths of this machine.
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
		// It finds the API server and kubectl, and has a folder to write to, as in its image.
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

// environment are variables as a kubelet resolves them.
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
				return nil, fmt.Errorf("pod %s: variable %s comes from something that is not simulated", pod.Name, v.Name)
			}
			value = fields[from.FieldRef.FieldPath]
		}
		env = append(env, v.Name+"="+value)
	}
	return env, nil
}

// confirm removes the pod once its process is gone, as a kubelet does.
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

// wait lets no further pod begin, and returns when all processes have ended: after the context they run under has.
func (k *kubelet) wait() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.running.Wait()
}

// of are the processes that run a program now.
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

// fleetlockFlag is how a manager gets the address of its FleetLock server.
const fleetlockFlag = "--fleetlock-bind-address="

// fleetlockAddress is for one pod, and stays the same when its program is started again.
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

// fleetlockServers are where the pods that run now serve FleetLock.
func (k *kubelet) fleetlockServers() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.fleetlock))
}

// noMetrics is the address that serves none.
const noMetrics = "0"

// MetricsTarget is where a pod of the operator serves its metrics: on this machine, and not at the port of its manifest.
type MetricsTarget struct {
	Pod     *corev1.Pod
	Address string
}

// MetricsTargets are those of the pods that run now, with Options.Metrics.
func MetricsTargets(f *Fleet) []MetricsTarget {
	f.kubelet.mu.Lock()
	defer f.kubelet.mu.Unlock()
	return slices.Collect(maps.Values(f.kubelet.targets))
}

// metricsAddress is for one pod, and stays the same when its program is started again.
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
