package scale

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

const (
	namespace  = "reboot-operator-system"
	policyName = "workers"
	// writers is the number of parallel requests when many objects are written. More would not be
	// faster on two cores.
	writers = 16
	// heartbeatPeriod is the interval at which a kubelet writes the status of an unchanged node
	// (nodeStatusReportFrequency). The kubelets' Leases are left out, because the manager and the
	// agents ignore them.
	heartbeatPeriod = 5 * time.Minute
)

// lab is an API server with nodes, and the writers of these nodes.
type lab struct {
	cluster *embedded.Cluster
	client  client.WithWatch
	nodes   int
	// beats counts the heartbeats.
	beats atomic.Int64
}

// stepper runs a named step, and reports its progress.
type stepper func(name string, run func() error) error

// inLab runs a function with a new API server that has the CRD and a policy that governs every
// node. slots is the policy's maxUnavailable.
func inLab(ctx context.Context, slots int, step stepper, run func(*lab) error) error {
	cluster, err := embedded.Start(ctx, embedded.Options{ServerOnly: true, Step: step})
	if err != nil {
		return err
	}
	defer cluster.Stop()
	if err := cluster.InstallKind(ctx); err != nil {
		return err
	}
	err = cluster.ApplyManifest(ctx, fmt.Appendf(nil, `apiVersion: v1
kind: Namespace
metadata: {name: %s}
---
apiVersion: reboot-operator.io/v1alpha1
kind: RebootPolicy
metadata: {name: %s}
spec: {concurrency: {maxUnavailable: %d}, reboot: {settle: 0s}}
`, namespace, policyName, slots))
	if err != nil {
		return err
	}
	l := &lab{cluster: cluster}
	if l.client, err = testenv.NewClient(cluster.Config()); err != nil {
		return err
	}
	return run(l)
}

// populate adds nodes up to the given number, which have been up for a day. The first ones will
// need reboots.
func (l *lab) populate(ctx context.Context, nodes, reboots int) error {
	from, up := l.nodes, time.Now().Add(-24*time.Hour)
	l.nodes = max(l.nodes, nodes)
	return each(ctx, from, nodes, func(ctx context.Context, i int) error {
		if err := l.client.Create(ctx, realNode(i, i < reboots, up)); err != nil {
			return fmt.Errorf("creating node %d: %w", i, err)
		}
		return nil
	})
}

// each calls write for each index of a range, several at a time.
func each(ctx context.Context, from, to int, write func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := from; i < to; i++ {
		group.Go(func() error { return write(ctx, i) })
	}
	return group.Wait()
}

// object is a part of a patch.
type object = map[string]any

// heartbeats writes the heartbeats of all nodes' kubelets, evenly over time, until ctx ends. They
// are late if the API server is busy.
func (l *lab) heartbeats(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	ticker := time.NewTicker(heartbeatPeriod / time.Duration(l.nodes))
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ticker.C:
			group.Go(func() error {
				err := testenv.PatchNode(ctx, l.client, "kubelet", nodeName(i%l.nodes), heartbeat(time.Now()))
				if err == nil {
					l.beats.Add(1)
				}
				return err
			})
		case <-ctx.Done():
			return group.Wait()
		}
	}
}

// heartbeat returns the patch of a kubelet if nothing has changed.
func heartbeat(now time.Time) object {
	var beats []object
	for kind := range kubeletConditions {
		beats = append(beats, object{"type": kind, "lastHeartbeatTime": metav1.NewTime(now)})
	}
	return object{"status": object{"conditions": beats}}
}

// spent returns the CPU time that a process uses during a function.
func spent(p *process.Process, run func() error) (time.Duration, error) {
	before, err := p.CPU()
	if err != nil {
		return 0, err
	}
	if err := run(); err != nil {
		return 0, err
	}
	after, err := p.CPU()
	return after - before, err
}
