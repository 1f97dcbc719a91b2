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
	"github.com/reboot-operator/reboot-operator/internal/pause"
)

// selected are the nodes that need reboots.
var selected = client.HasLabels{labelReboots}

// reboots plays the agents and the machines of the nodes that need a reboot, and records when slots are freed and given. Its
// methods run in one goroutine, but for those that write.
type reboots struct {
	lab  *lab
	down time.Duration
	fail func(error)

	// freed is when an agent had reported that all is well after the boot, and finished when the manager had confirmed it. granted is when
	// the grant was published. All are as this process saw them in a watch.
	freed, finished, granted []time.Time
}

// run makes all of them need a reboot, and returns when each has been rebooted and confirmed.
func (r *reboots) run(ctx context.Context) error {
	ctx, r.fail = context.WithCancelCause(ctx)
	defer r.fail(nil)
	var list corev1.NodeList
	if err := r.lab.client.List(ctx, &list, selected); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	// The API server ends the watch of one who is slow, as this process may be while thousands of nodes begin to need a reboot.
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
			return fmt.Errorf("rebooting %d nodes, %d of which are done: %w", len(list.Items), len(r.finished), context.Cause(ctx))
		}
	}
	return nil
}

// begin does something beside what is observed, and fails with it.
func (r *reboots) begin(ctx context.Context, what func() error) {
	go func() {
		if err := what(); err != nil && ctx.Err() == nil {
			r.fail(err)
		}
	}()
}

// observe records what has happened to a node since it was seen last, and begins its reboot once it may.
func (r *reboots) observe(ctx context.Context, before, node *corev1.Node) {
	now, was, is := time.Now(), grantOf(before), grantOf(node)
	if is.State == protocol.GrantActive && is.Seq > was.Seq {
		r.granted = append(r.granted, now)
		r.begin(ctx, func() error { return r.reboot(ctx, node.DeepCopy()) })
	}
	if isBack(node, is) && !isBack(before, was) {
		r.freed = append(r.freed, now)
	}
	if is.State == protocol.GrantFinished && was.State != protocol.GrantFinished {
		r.finished = append(r.finished, now)
	}
}

// grantOf is the last grant of a node; the zero one where there is none.
func grantOf(node *corev1.Node) protocol.Grant {
	grant, err := protocol.ParseGrant(node.Annotations)
	if err != nil || grant == nil {
		return protocol.Grant{}
	}
	return *grant
}

// isBack reports whether the node's agent has reported after the boot that the grant was for.
func isBack(node *corev1.Node, grant protocol.Grant) bool {
	return grant.Seq > 0 && node.Status.NodeInfo.BootID != grant.BootID && node.Labels[v1alpha1.LabelRebootRequired] == ""
}

// need reports, as an agent does, that an update is staged.
func (r *reboots) need(ctx context.Context, node *corev1.Node) error {
	return r.play(ctx, node, agents.Report(observed(agents.Staged(time.Now()), "4593.1.0", v1alpha1.BootedAt(node.Annotations))))
}

// reboot is what an agent and its machine do with a grant: the same four writes, and time in between for the machine alone.
func (r *reboots) reboot(ctx context.Context, node *corev1.Node) error {
	if err := r.play(ctx, node, agents.Start(time.Now()), agents.Commit(time.Now())); err != nil {
		return err
	}
	if !pause.For(ctx, clock.RealClock{}, r.down) {
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

// handovers are how long each slot was free before the next node had it. The first nodes take slots that no node had before them. From
// then on the first slot that is freed goes to the next node that is granted, and so on.
func handovers(freed, granted []time.Time, slots int) []time.Duration {
	freed, granted = slices.SortedFunc(slices.Values(freed), time.Time.Compare), slices.SortedFunc(slices.Values(granted), time.Time.Compare)
	var took []time.Duration
	for i := range max(0, min(len(freed), len(granted)-slots)) {
		took = append(took, granted[slots+i].Sub(freed[i]))
	}
	return took
}
