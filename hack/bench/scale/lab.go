package scale

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/bench/rules"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

const (
	namespace  = "reboot-operator-system"
	policyName = "workers"
	// writers is how many requests are under way at once where many objects are written: more only wait for two cores.
	writers = 16
	// lookEvery is how often something is looked at that is waited for.
	lookEvery = 100 * time.Millisecond
)

// lab is an API server with nodes, and whoever writes them.
type lab struct {
	cluster  *embedded.Cluster
	kube     kubernetes.Interface
	policies client.Client
	clock    clock.RealClock
	nodes    int
}

// stepper runs a named step, and reports how it goes.
type stepper func(name string, run func() error) error

// inLab runs something with an API server of its own, which has the CRD.
func inLab(ctx context.Context, step stepper, run func(*lab) error) error {
	// With profiling on, the API server can be asked for a garbage collection, and for what it holds after it.
	cluster, err := embedded.Start(ctx, embedded.Options{ServerOnly: true, ServerArgs: []string{"--profiling=true"}, Step: step})
	if err != nil {
		return err
	}
	defer cluster.Stop()
	l := &lab{cluster: cluster}
	if err := l.prepare(ctx); err != nil {
		return err
	}
	return run(l)
}

func (l *lab) prepare(ctx context.Context) error {
	config := protobuf(l.cluster.Config())
	scheme := runtime.NewScheme()
	err := v1alpha1.AddToScheme(scheme)
	if err != nil {
		return fmt.Errorf("registering the API: %w", err)
	}
	if l.kube, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	if err := l.cluster.Apply(ctx, filepath.Join(testenv.Root(), "config", "crd")); err != nil {
		return err
	}
	if err := l.cluster.AwaitKinds(ctx); err != nil {
		return err
	}
	if l.policies, err = client.New(l.cluster.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("building a client of policies: %w", err)
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := l.kube.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the namespace: %w", err)
	}
	return nil
}

// createPolicy makes the policy that governs every node, if it is not there. Slots is its maxUnavailable.
func (l *lab) createPolicy(ctx context.Context, slots int) error {
	limit := intstr.FromInt32(int32(slots))
	policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName}, Spec: v1alpha1.RebootPolicySpec{
		Concurrency: &v1alpha1.Concurrency{MaxUnavailable: &limit}, Settle: &metav1.Duration{},
	}}
	if err := client.IgnoreAlreadyExists(l.policies.Create(ctx, policy)); err != nil {
		return fmt.Errorf("creating policy %s: %w", policyName, err)
	}
	return nil
}

// setRules gives that policy every rule but a pause between reboots. What maxUptime costs once, a write for each node, is done here, and
// nothing is left of the reboots before.
func (l *lab) setRules(ctx context.Context, server *httptest.Server, slots int) error {
	if err := l.cluster.ApplyManifest(ctx, rules.Objects(server, slots)); err != nil {
		return err
	}
	var policy v1alpha1.RebootPolicy
	if err := l.policies.Get(ctx, client.ObjectKey{Name: policyName}, &policy); err != nil {
		return fmt.Errorf("reading policy %s: %w", policyName, err)
	}
	policy.Spec = rules.Spec(server, slots, nodeName(0))
	policy.Spec.Concurrency.Spacing = nil
	if err := l.policies.Update(ctx, &policy); err != nil {
		return fmt.Errorf("changing policy %s: %w", policyName, err)
	}
	return l.each(ctx, 0, l.nodes, func(ctx context.Context, i int) error {
		patch := encode(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
			v1alpha1.AnnotationMaxUptime: policy.Spec.MaxUptimeOf(nodeName(i)).String(),
			v1alpha1.AnnotationGrant:     nil, v1alpha1.AnnotationProgress: nil,
			v1alpha1.AnnotationScaleDownDisabled: nil, v1alpha1.AnnotationDoNotDisrupt: nil,
		}}})
		_, err := l.kube.CoreV1().Nodes().Patch(ctx, nodeName(i), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

func protobuf(config *rest.Config) *rest.Config {
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// populate adds nodes until there are so many, which have been up for a day. The first of them are going to need reboots.
func (l *lab) populate(ctx context.Context, nodes, reboots int) error {
	from, up := l.nodes, l.clock.Now().Add(-24*time.Hour)
	l.nodes = max(l.nodes, nodes)
	return l.each(ctx, from, nodes, func(ctx context.Context, i int) error {
		_, err := l.kube.CoreV1().Nodes().Create(ctx, realNode(i, i < reboots, up), metav1.CreateOptions{})
		return err
	})
}

// each writes each of the nodes in a range, several at once.
func (l *lab) each(ctx context.Context, from, to int, write func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := from; i < to; i++ {
		group.Go(func() error {
			if err := write(ctx, i); err != nil {
				return fmt.Errorf("writing node %d: %w", i, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// await waits until something is so, and gives up when the process that is to bring it about has ended.
func (l *lab) await(ctx context.Context, what string, limit time.Duration, p *process.Process, done func() bool) error {
	err := wait.PollUntilContextTimeout(ctx, lookEvery, limit, true, func(context.Context) (bool, error) {
		return done(), errors.Join(p.ExitError(), l.cluster.Err())
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}

// pause lets time pass.
func (l *lab) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-l.clock.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
