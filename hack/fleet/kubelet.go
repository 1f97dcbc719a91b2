package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
)

const (
	// namespace is the operator's.
	namespace = "reboot-operator-system"
	// stopGrace is how long a process has to end when its pod is deleted, as terminationGracePeriodSeconds is.
	stopGrace = 10 * time.Second
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

	mu        sync.Mutex
	pods      map[types.UID]context.CancelFunc
	processes map[types.UID]*process.Process
	targets   map[types.UID]MetricsTarget
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

// prepare claims the pod, so that kwok does not delete it under a process that is still ending, and gets its token.
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
	if len(pod.Spec.Containers[0].Command) == 0 {
		metrics, err := k.metricsAddress(ctx, pod)
		if err != nil {
			return process.Program{}, err
		}
		return programOf(pod, kubeconfig, metrics, host)
	}
	home := filepath.Join(k.cluster.Dir, pod.Name+".home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return process.Program{}, fmt.Errorf("making the home of %s: %w", pod.Name, err)
	}
	return commandOf(pod, home, kubeconfig, filepath.Dir(k.cluster.KubectlPath()))
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
