package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/agents"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

// selected selects the nodes that will need reboots.
var selected = client.HasLabels{labelReboots}

// reboots plays the agents and machines of the nodes that need a reboot, and records when slots are
// freed and granted. Apart from its writes, it runs in one goroutine.
type reboots struct {
	lab  *lab
	down time.Duration
	fail func(error)

	// freed has the times at which agents reported success after the boot, finished those at which
	// the manager confirmed it, and granted those at which grants were published, all as seen in a
	// watch.
	freed, finished, granted []time.Time
}

// run makes all these nodes need a reboot, and waits until every reboot is confirmed.
func (r *reboots) run(ctx context.Context) error {
	ctx, r.fail = context.WithCancelCause(ctx)
	defer r.fail(nil)
	var list corev1.NodeList
	if err := r.lab.client.List(ctx, &list, selected); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	// The API server ends the watch of a slow client, and this process may be slow while thousands
	// of nodes begin to need a reboot.
	changes, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return r.lab.client.Watch(ctx, &corev1.NodeList{}, selected, &client.ListOptions{Raw: &options})
		},
	})
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	defer changes.Stop()
	r.begin(ctx, func() error {
		return each(ctx, 0, len(list.Items), func(ctx context.Context, i int) error { return r.need(ctx, list.Items[i].DeepCopy()) })
	})
	last := map[string]*corev1.Node{}
	for i := range list.Items {
		last[list.Items[i].Name] = &list.Items[i]
	}
	for len(r.finished) < len(list.Items) {
		select {
		case change, open := <-changes.ResultChan():
			node, isNode := change.Object.(*corev1.Node)
			if !open || !isNode {
				return cmp.Or(context.Cause(ctx), errors.New("the watch of nodes has ended"))
			}
			r.observe(ctx, last[node.Name], node)
			last[node.Name] = node
		case <-ctx.Done():
			return fmt.Errorf("rebooting %d nodes, %d are done: %w", len(list.Items), len(r.finished), context.Cause(ctx))
		}
	}
	return nil
}

// begin starts a goroutine whose error ends the run.
func (r *reboots) begin(ctx context.Context, action func() error) {
	go func() {
		if err := action(); err != nil && ctx.Err() == nil {
			r.fail(err)
		}
	}()
}

// observe records what happened to a node, and begins its reboot once it has a grant.
func (r *reboots) observe(ctx context.Context, before, node *corev1.Node) {
	now, was, grant := time.Now(), grantOf(before), grantOf(node)
	if grant.State == protocol.GrantActive && grant.Seq > was.Seq {
		r.granted = append(r.granted, now)
		r.begin(ctx, func() error { return r.reboot(ctx, node.DeepCopy()) })
	}
	if isBack(node, grant) && !isBack(before, was) {
		r.freed = append(r.freed, now)
	}
	if grant.State == protocol.GrantFinished && was.State != protocol.GrantFinished {
		r.finished = append(r.finished, now)
	}
}

// grantOf returns the last grant of a node, or a zero Grant.
func grantOf(node *corev1.Node) protocol.Grant {
	grant, err := protocol.ParseGrant(node.Annotations)
	if err != nil || grant == nil {
		return protocol.Grant{}
	}
	return *grant
}

// isBack reports whether the node's agent has reported after the granted reboot.
func isBack(node *corev1.Node, grant protocol.Grant) bool {
	return grant.Seq > 0 && node.Status.NodeInfo.BootID != grant.BootID && node.Labels[v1alpha1.LabelRebootRequired] == ""
}

// need reports a staged update, as an agent does.
func (r *reboots) need(ctx context.Context, node *corev1.Node) error {
	return r.play(ctx, node, agents.Report(observed(agents.Staged(time.Now()), "4593.1.0", v1alpha1.BootedAt(node.Annotations))))
}

// reboot plays the agent and the machine of a granted reboot, with the same four writes and some
// time for the machine in between.
func (r *reboots) reboot(ctx context.Context, node *corev1.Node) error {
	if err := r.play(ctx, node, agents.Start(time.Now()), agents.Commit(time.Now())); err != nil {
		return err
	}
	if !lifecycle.Pause(ctx, clock.RealClock{}, r.down) {
		return ctx.Err()
	}
	now := time.Now()
	return r.play(ctx, node, agents.Boot(string(uuid.NewUUID())), agents.Report(observed(agents.UpToDate(now), "4593.2.0", now)))
}

func (r *reboots) play(ctx context.Context, node *corev1.Node, moves ...agents.Move) error {
	if err := agents.Play(ctx, r.lab.client, node, moves...); err != nil {
		return fmt.Errorf("playing the agent of node %q: %w", node.Name, err)
	}
	return nil
}

// handovers returns how long each slot was free before the next node got it. The first nodes take
// slots that have not been used before. After that, slots go to nodes in the order in which they
// were freed.
func handovers(freed, granted []time.Time, slots int) []time.Duration {
	freed, granted = slices.SortedFunc(slices.Values(freed), time.Time.Compare), slices.SortedFunc(slices.Values(granted), time.Time.Compare)
	var took []time.Duration
	for i := range max(0, min(len(freed), len(granted)-slots)) {
		took = append(took, granted[slots+i].Sub(freed[i]))
	}
	return took
}
